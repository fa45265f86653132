"""One module for each format, with a class `Reader`: a `Document` of that format."""
