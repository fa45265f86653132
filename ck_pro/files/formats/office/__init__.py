"""Documents, spreadsheets and presentations; one module for each format."""
