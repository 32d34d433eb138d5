"""Mail and webhooks: settings, the texts of messages, and how they are sent."""
