"""What everything stands on: checked arrays and parameters, small dense factorisations, the file format."""
