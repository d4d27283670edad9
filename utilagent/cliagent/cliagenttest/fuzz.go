package cliagenttest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// FuzzDecoder fuzzes an adapter's decoder for each kind of call that it decodes differently; without calls it
// uses one without a session. The decoder must not fail, must be pure, and must not report a successful call
// without a session ID. The seeds are the recorded runs in testdata/fixtures and testdata/streams.txt.
func FuzzDecoder(f *testing.F, a cliagent.Adapter, calls ...cliagent.Call) {
	f.Helper()
	if len(calls) == 0 {
		calls = []cliagent.Call{{}}
	}
	seeds, err := filepath.Glob("testdata/fixtures/*")
	require.NoError(f, err)
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(data, 0)
	}
	for _, s := range loadStreams(f) {
		f.Add([]byte(strings.Join(s.lines, "\n")+"\n"), s.exit.Code)
	}
	f.Add([]byte("{}\n[]\nnull\n\"x\"\n{\"type\":1}\n\x00\xff"), 1)
	f.Fuzz(func(t *testing.T, data []byte, code int) {
		for _, call := range calls {
			events, outcome := decode(a, call, data, cliagent.Exit{Code: code})
			again, same := decode(a, call, data, cliagent.Exit{Code: code})
			require.Equal(t, events, again)
			require.Equal(t, outcome, same)
			require.NotEmpty(t, outcome.Kind)
			require.Equal(t, outcome.Kind == cliagent.Failed, outcome.Error != "")
			if outcome.Kind == cliagent.OK {
				require.Empty(t, outcome.Message)
			} else {
				require.NotEmpty(t, outcome.Message)
			}
		}
	})
}

func decode(a cliagent.Adapter, c cliagent.Call, data []byte, e cliagent.Exit) (events []cliagent.Event, _ cliagent.Outcome) {
	d := a.Decoder(c)
	for line := range bytes.Lines(data) {
		decoded, _ := d.Line(bytes.TrimRight(line, "\r\n"))
		events = append(events, decoded...)
	}
	return events, d.End(e)
}
