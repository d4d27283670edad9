package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		2 * time.Hour: "2h", 90 * time.Minute: "1h30m", time.Hour + 5*time.Second: "1h0m5s",
		10 * time.Minute: "10m", 20 * time.Second: "20s", 0: "0s", 1500 * time.Millisecond: "1.5s",
	} {
		require.Equal(t, want, Span(d))
	}
}
