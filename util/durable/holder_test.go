package durable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseHolder(f *testing.F) {
	f.Add("pid 123 since 2026-11-21T15:04:05Z\n")
	f.Add("pid 123 since 2026-11-21T15:04:05+02:00\nleft over")
	f.Add("pid -1 since 2026-11-21T15:04:05Z\n")
	f.Add("pid 1 since 9999-12-31T23:59:59-23:00\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHolder(text)
		if err != nil {
			require.ErrorIs(t, err, ErrNoHolder)
			return
		}
		require.Positive(t, h.Pid)
		again, err := parseHolder(h.String() + "\n")
		require.NoError(t, err)
		require.Equal(t, h.Pid, again.Pid)
		require.Equal(t, h.Since.Unix(), again.Since.Unix(), "to the second")
	})
}
