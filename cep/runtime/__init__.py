"""What generated code calls: functions, careful conditions, aggregates, windows, texts."""
