"""What is known of an agent's work from what it printed. Knows no format."""

from __future__ import annotations

from dataclasses import dataclass, field

from issuesandbox.api.status_run import TokenUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """The state of an agent's work after the output read so far."""

    needs_result: bool = True
    """This agent always prints a result line before it ends well."""
    session_id: str | None = None
    turns: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: str | None = None
    """US dollars over the whole session, earlier runs that were resumed included."""
    last_tool: str | None = None
    retries: int = 0
    """Requests to the model that the agent had to repeat."""
    last_retry_status: int | None = None
    final_text: str = ""
    """The last result's text, else the last thing the agent said."""
    last_words: str = ""
    """The last line that was no message: a crash or a refusal to start explains itself there."""
    is_error: bool = False
    subtype: str | None = None
    terminal_reason: str | None = None
    result_seen: bool = False
    unauthorized: bool = False
    """The model's service refuses the key: repeating cannot help."""
