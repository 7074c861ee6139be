"""SRV: the serve command. The rules are told apart by what they look at; this is the family as one."""

from . import srv_client, srv_flags, srv_grammar, srv_values

ROOMS = (srv_flags, srv_grammar, srv_client, srv_values)
"""Importing them registers the family's rules."""
