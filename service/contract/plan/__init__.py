"""From a request to a graph of works: pure, no clock, no files, no database."""
