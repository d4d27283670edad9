package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Settings that would fail every step, or keep a worker busy without work, are refused at startup.
func TestConfigBounds(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"maxConcurrentSteps: -1": "maxConcurrentSteps", "maxConcurrentSteps: 1001": "maxConcurrentSteps", "maxConcurrentSteps: 8": "",
		"slots: 8": "it is maxConcurrentSteps now", "drain: 1m": "it is shutdownTimeout now", "silence: 1m": "it is heartbeatTimeout now",
		"lease: 1ms": "lease", "lease: 25h": "lease", "lease: 1s": "", "lease: 24h": "", "lease: 0s": "above zero", "lease: -5s": "above zero",
		"watch: 1ns": "watch", "watch: 50ms": "", "remote: team": "", "": "", "leese: 1s": "leese",
	} {
		err := parse([]byte(text), &config{})
		if wrong == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, wrong, text)
	}
}
