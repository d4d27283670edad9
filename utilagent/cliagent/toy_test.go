package cliagent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/internal/nodestest"
)

// toy describes a program whose lines are a letter and an argument: S session, M mark, T text, F the answer
// without a turn, D delta, C call, R result, N notice, U usage of the session so far, V pointless retries, Y
// retries after a status, K input and output tokens, Q truncated, Z refused, and last . (ok) or X kind message.
func toy() cliagent.Adapter {
	return cliagent.Adapter{
		Name: "toy", Program: "toy", Install: "get a toy", Login: "toy login",
		Command: func(c cliagent.Call) (cliagent.Invocation, error) {
			args := append([]string{"--permission", string(c.Permission), "--model", c.Model, "--max", strconv.Itoa(c.MaxTurns)}, c.Extra...)
			switch {
			case c.Cut != "":
				args = append(args, "--cut", c.Cut, "--fork", c.Session)
			case c.Fork:
				args = append(args, "--fork", c.Session)
			case c.Resume:
				args = append(args, "--resume", c.Session)
			default:
				args = append(args, "--session", c.Session)
			}
			return cliagent.Invocation{Args: args, Stdin: c.Prompt, Env: []string{"TOY=1"}}, nil
		},
		Decoder:  func(cliagent.Call) cliagent.Decoder { return &toyDecoder{} },
		Sessions: cliagent.Sessions{Preset: true},
		Unset:    []string{"OUTER_*"},
		Timeouts: cliagent.Timeouts{
			Start: 20 * time.Second, Idle: 20 * time.Second, Tool: 20 * time.Second,
			Grace: 200 * time.Millisecond, Stop: 200 * time.Millisecond,
		},
	}
}

type toyDecoder struct {
	out   cliagent.Outcome
	ended bool
}

func (d *toyDecoder) Line(line []byte) ([]cliagent.Event, bool) {
	word, rest, ok := strings.Cut(strings.ReplaceAll(string(line), `\n`, "\n"), " ")
	first, second, _ := strings.Cut(rest, " ")
	switch {
	case word == ".":
		d.out.Kind, d.ended = cliagent.OK, true
		return []cliagent.Event{{Kind: cliagent.Done}}, true
	case !ok:
		return nil, false
	}
	switch word {
	case "S":
		return []cliagent.Event{{Kind: cliagent.Started, Session: rest, Model: "toy-1"}}, true
	case "M":
		d.out.Mark = rest
		return nil, true
	case "F":
		d.out.Final = rest
		return nil, true
	case "T":
		return []cliagent.Event{{Kind: cliagent.Text, Text: rest}}, true
	case "D":
		return []cliagent.Event{{Kind: cliagent.Delta, Text: rest}}, true
	case "B":
		return []cliagent.Event{{Kind: cliagent.Text, Text: rest, Sub: true}}, true
	case "N":
		return []cliagent.Event{{Kind: cliagent.Notice, Text: rest}}, true
	case "C":
		return []cliagent.Event{{Kind: cliagent.Called, Call: protocol.ToolCall{ID: first, Name: second, Args: map[string]any{"a": "b"}}}}, true
	case "R":
		return []cliagent.Event{{Kind: cliagent.Returned, Call: protocol.ToolCall{ID: first}, Text: second}}, true
	case "V":
		return []cliagent.Event{{Kind: cliagent.Retrying, Text: rest, Error: errorkind.Auth}}, true
	case "Y":
		status, _ := strconv.Atoi(rest)
		return []cliagent.Event{{Kind: cliagent.Retrying, Status: status}}, true
	case "K":
		in, _ := strconv.ParseInt(first, 10, 64)
		out, _ := strconv.ParseInt(second, 10, 64)
		d.out.Usage = cliagent.Usage{Usage: &protocol.Usage{InputTokens: in, OutputTokens: out}}
		return nil, true
	case "Q":
		d.out.Truncated = true
		return nil, true
	case "Z":
		d.out.Refused = append(d.out.Refused, rest)
		return nil, true
	case "U":
		in, _ := strconv.ParseInt(first, 10, 64)
		cost, _ := strconv.ParseFloat(second, 64)
		d.out.Usage = cliagent.Usage{Usage: &protocol.Usage{InputTokens: in, CostUSD: &cost}, TokensOfSession: true, CostOfSession: true}
		return nil, true
	case "X":
		kind, message, _ := strings.Cut(rest, " ")
		d.ended = true
		d.out.Kind, d.out.Message = cliagent.OutcomeKind(kind), message
		if kind == "error" {
			d.out.Error, d.out.Message = errorkind.Kind(strings.Fields(message)[0]), message
		}
		return []cliagent.Event{{Kind: cliagent.Done}}, true
	}
	return nil, false
}

func (d *toyDecoder) End(e cliagent.Exit) cliagent.Outcome {
	if d.ended {
		return d.out
	}
	return e.Unfinished()
}

// good is an answer that fits the default schema, as a line of the toy.
const good = `T ---\n$status: done\n---\nIt is done.`

// table is a thread that runs a toy.
type table struct {
	t   *testing.T
	dir string // of the toy
	*agentkittest.Thread
	adapter cliagent.Adapter
	played  int
}

// set creates a thread; config is the content of agents.toy.
func set(t *testing.T, a cliagent.Adapter, config string, environ ...string) *table {
	t.Helper()
	b := &table{t: t, dir: t.TempDir(), adapter: a}
	if config != "" {
		config = "agents:\n  toy:\n    command: uwf-toy\n    " + strings.ReplaceAll(config, "\n", "\n    ") + "\n"
	}
	b.Thread = agentkittest.New(t, agentkittest.Scenario{
		Task: "the task", EdgePrompt: "the instruction", Config: config,
		Environ: append([]string{"UWF_TOY_BIN=" + os.Args[0], playVariable + "=" + b.dir}, environ...),
	})
	return b
}

// plays sets the scripts for the next calls.
func (b *table) plays(scripts ...string) *table {
	b.t.Helper()
	for _, s := range scripts {
		b.played++
		require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, "play-"+strconv.Itoa(b.played)), []byte(s), 0o600))
	}
	return b
}

func (b *table) step() *agentkittest.Outcome {
	b.t.Helper()
	return b.Run(cliagent.Options(b.adapter))
}

// heard returns the input of each call; their number must match.
func (b *table) heard(calls int) []heard {
	b.t.Helper()
	var all []heard
	for n := 1; exists(filepath.Join(b.dir, "heard-"+strconv.Itoa(n))); n++ {
		data, err := os.ReadFile(filepath.Join(b.dir, "heard-"+strconv.Itoa(n)))
		require.NoError(b.t, err)
		var h heard
		require.NoError(b.t, json.Unmarshal(data, &h))
		all = append(all, h)
	}
	require.Len(b.t, all, calls)
	return all
}

// written returns the unfinished turns that a run has shown.
func (b *table) written(got *agentkittest.Outcome) []string {
	b.t.Helper()
	var texts []string
	for line := range strings.Lines(got.Stdout) {
		var l protocol.TurnLine
		if json.Unmarshal([]byte(line), &l) == nil && l == protocol.NewWritingLine(l.Hash) {
			turn, err := cas.Read[protocol.Turn](b.t.Context(), nodestest.Of(b.t, b.Thread), l.Hash)
			require.NoError(b.t, err)
			texts = append(texts, turn.Content)
		}
	}
	return texts
}

// configure adds to the config.
func (b *table) configure(more string) {
	b.t.Helper()
	path := filepath.Join(b.Home, "config.yaml")
	data, err := os.ReadFile(path)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(path, append(data, more...), 0o600))
}
