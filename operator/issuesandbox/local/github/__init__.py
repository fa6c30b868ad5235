"""A GitHub that runs on one machine: REST calls, webhooks and real git over HTTP.

Knows nothing of the operator; anything that speaks to GitHub can use it.
"""
