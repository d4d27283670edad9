package protocol

import (
	"strings"
	"time"
)

// Span is a length of time as people write it: 2h, not 2h0m0s.
func Span(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
