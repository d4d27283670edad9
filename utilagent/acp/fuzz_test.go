package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// seeds adds the recorded lines of all agents, and some invalid ones.
func seeds(f *testing.F) {
	f.Helper()
	paths, err := filepath.Glob("testdata/fixtures/*.jsonl")
	require.NoError(f, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		for line := range strings.Lines(string(data)) {
			var l scriptLine
			if json.Unmarshal([]byte(line), &l) == nil && len(l.Msg) > 0 && len(l.Msg) < 2000 {
				f.Add([]byte(l.Msg))
			}
		}
	}
	for _, line := range []string{
		``, `{`, `[]`, `{"id":null,"method":"x"}`, `{"id":1.0,"result":null}`, `{"id":"1","error":"text"}`, `{"error":{"code":"429","message":3}}`,
		`{"method":"session/request_permission","id":{"a":1},"params":{"toolCall":[],"options":{}}}`,
		`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"t","content":[null,{"type":"diff"}],"rawOutput":[1]}}}`,
	} {
		f.Add([]byte(line))
	}
}

// quietPeer handles messages without a session.
type quietPeer struct{ asks int }

func (p *quietPeer) notified(string, json.RawMessage) {}
func (p *quietPeer) asked(string, json.RawMessage) (any, error) {
	p.asks++
	return nil, errEnded
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }

// FuzzMessage checks that any line is read without a panic, and that a request is answered.
func FuzzMessage(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		m := decode(line)
		switch m.kind {
		case request:
			require.NotEmpty(t, m.method)
			require.NotEmpty(t, m.id)
			reply, err := encode(outgoing{ID: m.id, Error: &outgoingError{Code: codeInternal}})
			require.NoError(t, err)
			require.Equal(t, response, decode(reply).kind)
			require.Equal(t, key(m.id), key(decode(reply).id))
		case response:
			require.True(t, (m.err == nil) != (m.result == nil))
			if m.err != nil {
				require.NotEmpty(t, m.err.Error())
			}
		}
		p := &quietPeer{}
		c := newConn(nowhere{}, p)
		defer c.end(errEnded)
		require.Equal(t, m.kind != noise, c.feed(t.Context(), line))
		require.Equal(t, m.kind == request, p.asks == 1)
	})
}

// FuzzUpdates checks that events are in order: no result without its call, and all calls are reported in the
// end.
func FuzzUpdates(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, lines []byte) {
		called, returned := 0, 0
		tell := newEmitter(func(e cliagent.Event) {
			switch e.Kind {
			case cliagent.Called:
				called++
			case cliagent.Returned:
				returned++
			}
			require.GreaterOrEqual(t, called, returned)
		})
		for line := range strings.Lines(string(lines)) {
			m := decode([]byte(line))
			var u updateParams
			if m.kind == noise || lenient(m.params, &u) != nil {
				continue
			}
			tell.update(u.Update)
			var p permissionParams
			if lenient(m.params, &p) == nil {
				(&service{permission: cliagent.Readonly, refuse: func(string) {}}).allows(tell.permissionAsked(p.ToolCall.toolCall, p.ToolCall.Content))
				choose(p.Options, true)
			}
		}
		tell.emitCalls()
		require.Equal(t, tell.tools, called)
	})
}
