package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// script is a recorded conversation: what each side sent, in order.
type script struct {
	lines  []scriptLine
	expect expectation
}

type scriptLine struct {
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
	Raw string          `json:"raw"`
}

type expectation struct {
	Stop    string  `json:"stop"`
	Final   string  `json:"final"`
	Session string  `json:"session_id"`
	Outcome string  `json:"outcome"`
	Error   string  `json:"error_kind"`
	Calls   int     `json:"tool_calls"`
	Errors  []int   `json:"errors"`
	Cost    float64 `json:"cost_usd"`
	Usage   *struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
		Reasoning  int64 `json:"reasoning_tokens"`
	} `json:"usage"`
}

func loadScript(t *testing.T, path string) script {
	t.Helper()
	var s script
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var l scriptLine
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		if l.Dir != "" {
			s.lines = append(s.lines, l)
		}
	}
	var meta struct {
		Expect expectation `json:"expect"`
	}
	data, err = os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".meta.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &meta))
	s.expect = meta.Expect
	return s
}

// played is the agent of a recorded conversation. It sends what was recorded and compares what it receives.
type played struct {
	toAgent   *io.PipeReader
	stdin     *io.PipeWriter
	fromAgent *bufio.Reader
	stdout    *io.PipeWriter
	ended     chan struct{}
	waits     chan func() // cancels what the agent does not answer
	err       error
	once      sync.Once
}

func play(s script) *played {
	p := &played{ended: make(chan struct{}), waits: make(chan func(), 1)}
	p.toAgent, p.stdin = io.Pipe()
	out, in := io.Pipe()
	p.fromAgent, p.stdout = bufio.NewReader(out), in
	go func() {
		p.err = p.run(s)
		p.rest()
		p.end()
	}()
	return p
}

func (p *played) end() {
	p.once.Do(func() {
		_ = p.stdout.Close()
		_ = p.toAgent.Close()
		close(p.ended)
	})
}

func (p *played) Stdin() io.WriteCloser { return p.stdin }
func (p *played) ReadLine() ([]byte, error) {
	line, err := p.fromAgent.ReadString('\n')
	return []byte(strings.TrimSuffix(line, "\n")), err
}
func (p *played) Ended() <-chan struct{}       { return p.ended }
func (p *played) Stop(time.Duration)           { p.end() }
func (p *played) Wait() (cliagent.Exit, error) { <-p.ended; return cliagent.Exit{}, nil }

// run plays the script. Our IDs may differ from the recorded ones.
func (p *played) run(s script) error {
	ids := map[string]json.RawMessage{} // recorded → ours
	heard := bufio.NewReader(p.toAgent)
	for n, l := range s.lines {
		if l.Dir == "a2c" {
			if _, err := io.WriteString(p.stdout, l.text(ids)+"\n"); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		if n > 0 && s.lines[n-1].Dir == "c2a" && strings.Contains(string(l.Msg), `"session/cancel"`) {
			(<-p.waits)()
		}
		line, err := heard.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("line %d: nothing was sent, want %s", n, l.Msg)
		}
		var want, got map[string]any
		if err := json.Unmarshal(l.Msg, &want); err != nil {
			return err
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return fmt.Errorf("line %d: %q: %w", n, line, err)
		}
		method, _ := want["method"].(string)
		if method != "" && want["id"] != nil {
			ids[key(idOf(l.Msg))] = idOf(line)
			delete(want, "id")
			delete(got, "id")
		}
		if params, ok := got["params"].(map[string]any); ok && params["mcpServers"] != nil { // a request that opens a session
			var meta any = map[string]any{"claudeCode": map[string]any{"options": map[string]any{"settingSources": []string{"user"}}}}
			if !equalJSON(meta, params["_meta"]) {
				return fmt.Errorf("line %d: the settings of a directory are not ruled out: %s", n, line)
			}
			delete(params, "_meta") // newer than the recording
		}
		if !equalJSON(want, got) {
			return fmt.Errorf("line %d: sent %s\nwant %s", n, line, l.Msg)
		}
	}
	return nil
}

// rest answers requests after the end of the script, until stdin is closed.
func (p *played) rest() {
	heard := bufio.NewReader(p.toAgent)
	for {
		line, err := heard.ReadBytes('\n')
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(p.stdout, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", idOf(line))
	}
}

func patient() time.Duration { return time.Minute }

// text returns a line of the agent with our IDs in its answers.
func (l scriptLine) text(ids map[string]json.RawMessage) string {
	if l.Raw != "" {
		return l.Raw
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(l.Msg, &m) == nil && m["method"] == nil && ids[key(m["id"])] != nil {
		m["id"] = ids[key(m["id"])]
		b, _ := json.Marshal(m) // it was just decoded
		return string(b)
	}
	return string(l.Msg)
}

func idOf(msg []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(msg, &m) // the caller has decoded it
	return m.ID
}

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a) // both come from JSON
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// told is the result of a prompt.
type told struct {
	events []cliagent.Event
	result prompted
	prompt *prompt
	err    error
}

// drive makes the client do what the recorded one did. It returns the result of each prompt, and the codes of
// errors.
func drive(t *testing.T, s script, p *played, c *client) (prompts []told, codes []int) {
	t.Helper()
	failed := func(err error) {
		if rpc := (*RPCError)(nil); err != nil {
			require.ErrorAs(t, err, &rpc)
			codes = append(codes, rpc.Code)
		}
	}
	for n, l := range s.lines {
		var m struct {
			Method string
			Params struct {
				SessionID, Cwd, ModeID, Value string
				Prompt                        []promptBlock
			}
		}
		if l.Dir != "c2a" || json.Unmarshal(l.Msg, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			require.NoError(t, c.start(t.Context(), capabilities{}, "0.1.0"))
		case "session/new", "session/load", "session/resume":
			failed(c.open(t.Context(), opening(m.Method), m.Params.SessionID, m.Params.Cwd))
		case "session/set_mode":
			require.NoError(t, c.setMode(t.Context(), m.Params.ModeID))
		case "session/set_config_option":
			require.NoError(t, c.setModel(t.Context(), m.Params.Value))
		case "session/prompt":
			c.session = m.Params.SessionID // even if it could not be opened
			r := put(t.Context(), cancels(s.lines[n+1:]), p, c, m.Params.Prompt[0].Text)
			failed(r.err)
			prompts = append(prompts, r)
		}
	}
	return prompts, codes
}

// cancels reports whether the recorded client cancelled the prompt before rest.
func cancels(rest []scriptLine) bool {
	for _, l := range rest {
		switch {
		case strings.Contains(string(l.Msg), `"session/cancel"`):
			return true
		case strings.Contains(string(l.Msg), `"session/prompt"`):
			return false
		}
	}
	return false
}

// put sends a prompt. If cancelled is set, it cancels the prompt as soon as the agent has it or calls a tool.
func put(ctx context.Context, cancelled bool, p *played, c *client, text string) told {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if cancelled {
		p.waits <- cancel
	}
	var r told
	r.result, r.prompt, r.err = c.ask(ctx, text, patient, func(e cliagent.Event) {
		r.events = append(r.events, e)
		if cancelled && e.Kind == cliagent.Called {
			cancel()
		}
	})
	return r
}

// answer returns the text that the runner would use: the last one after the last tool event.
func (r told) answer() (text string) {
	id, open := "", false
	for _, e := range r.events {
		if e.Sub {
			continue
		}
		switch e.Kind {
		case cliagent.Delta:
			if !open || id != e.ID {
				text = ""
			}
			text, id, open = text+e.Text, e.ID, true
		case cliagent.Called, cliagent.Returned:
			text, open = "", false
		case cliagent.Break, cliagent.Reasoning:
			open = false
		}
	}
	return text
}

func (r told) count(k cliagent.Kind) (n int) {
	for _, e := range r.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// TestRecordedConversations checks that the client sends what was recorded, and interprets the answers as
// recorded.
func TestRecordedConversations(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/fixtures/*.jsonl")
	require.NoError(t, err)
	require.Len(t, paths, 17)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jsonl"), func(t *testing.T) {
			t.Parallel()
			replay(t, loadScript(t, path), permissionOf(path))
		})
	}
}

// permissionOf returns the permission of the recorded client.
func permissionOf(path string) cliagent.Permission {
	if strings.HasSuffix(path, "permission_reject.jsonl") {
		return cliagent.Readonly
	}
	return cliagent.Bypass
}

func replay(t *testing.T, s script, permission cliagent.Permission) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("# Project\n"), 0o600))
	for i := range s.lines { // replace the recorded working directory by ours
		s.lines[i].Msg = []byte(strings.ReplaceAll(string(s.lines[i].Msg), "/srv/repo", filepath.ToSlash(dir)))
	}
	space, err := tools.OpenWorkspace(dir)
	require.NoError(t, err)
	p := play(s)
	c := newClient(p, &service{permission: permission, space: space})
	prompts, codes := drive(t, s, p, c)
	resumed := slices.ContainsFunc(s.lines, func(l scriptLine) bool { return strings.Contains(string(l.Msg), `"session/resume"`) })
	_, err = c.close(time.Minute, true)
	require.NoError(t, err)
	require.NoError(t, p.err)
	if len(s.expect.Errors) > 0 {
		require.Equal(t, s.expect.Errors, codes)
	}
	if len(prompts) == 0 || s.expect.Stop == "" {
		require.Contains(t, []string{"", "auth"}, s.expect.Error)
		return
	}
	r := prompts[0]
	require.Equal(t, s.expect.Stop, r.result.StopReason)
	require.Equal(t, s.expect.Final, r.answer())
	if s.expect.Calls > 0 {
		require.Equal(t, s.expect.Calls, r.count(cliagent.Called))
		require.Equal(t, s.expect.Calls, r.count(cliagent.Returned))
	}
	if s.expect.Session != "" {
		require.Equal(t, s.expect.Session, r.prompt.session)
	}
	got := c.outcome(r.result, r.prompt, resumed)
	requireOutcome(t, s.expect, got)
}

func requireOutcome(t *testing.T, want expectation, got cliagent.Outcome) {
	t.Helper()
	switch {
	case want.Outcome == "error_suspected":
		require.Equal(t, cliagent.Failed, got.Kind)
		require.Equal(t, errorkind.BadRequest, got.Error)
	case want.Outcome != "":
		require.Equal(t, cliagent.OutcomeKind(want.Outcome), got.Kind)
	case want.Final == "":
		require.Equal(t, cliagent.Incomplete, got.Kind)
		prosetest.Text(t, got.Message)
	default:
		require.Equal(t, cliagent.OK, got.Kind, got.Message)
	}
	if u := want.Usage; u != nil {
		require.Equal(t, []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning},
			[]int64{got.Usage.InputTokens, got.Usage.OutputTokens, got.Usage.CacheReadTokens, got.Usage.CacheWriteTokens, got.Usage.ReasoningTokens})
	}
	if want.Cost > 0 {
		require.InDelta(t, want.Cost, *got.Usage.CostUSD, 1e-9)
		require.True(t, got.Usage.CostOfSession)
	}
}
