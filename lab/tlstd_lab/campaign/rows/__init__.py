"""The promises, one file each: a row of the table, and how it is tried."""
