"""Traces of OpenTelemetry, OpenInference, Langfuse, LangSmith and OpenAI's Agents."""
