"""The harness of the course: finds pairs, proves their versions equal, times them, and says what may be believed."""
