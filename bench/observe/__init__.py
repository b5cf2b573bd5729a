"""A look at a running process from outside: what it does to memory, and what cannot matter to it.

Readers take text or a root folder, so that stored files can stand for a host. Nothing is written,
no counter is opened, no process is stopped.
"""
