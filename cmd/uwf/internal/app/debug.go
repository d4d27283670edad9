package app

import (
	"io"
	"log/slog"
)

// decisions is a log of what the engine decides: its facts, the reason and the action.
func decisions(to io.Writer) *slog.Logger {
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: plain}))
}
