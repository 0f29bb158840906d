"""What one cold request touches, counted to the cache line: `make lines`.

Microseconds differ from hour to hour; the lines of code and data that a request touches do not. The server's event
loop is stepped through one request, instruction by instruction.
"""
