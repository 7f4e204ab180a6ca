"""One measurement, from files to a verdict. common/README.md follows a pair through the stages."""
