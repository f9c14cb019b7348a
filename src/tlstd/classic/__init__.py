"""The methods that others are measured by: LSTD, TD and true-online TD, and what they share with others."""
