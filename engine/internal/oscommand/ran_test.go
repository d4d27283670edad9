package oscommand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// ran returns an ended command with the given output; a missing text means no file.
func ran(t *testing.T, o agentproc.Outcome, printed map[string]string) Ran {
	t.Helper()
	dir := runfiles.Dir(t.TempDir())
	for name, text := range printed {
		require.NoError(t, os.WriteFile(dir.File(name), []byte(text), 0o600))
	}
	return Ran{Outcome: o, Argv: []string{"make", "test"}, Env: map[string]string{"TAG": "v1\n"}, Dir: dir}
}

func output(text string) map[string]string { return map[string]string{runfiles.OutputFile: text} }

func TestNotRun(t *testing.T) {
	t.Parallel()
	both := map[string]string{runfiles.StderrFile: "an error\n", runfiles.OutputFile: "a line\n"}
	for _, c := range []struct {
		name    string
		outcome agentproc.Outcome
		stopped bool
		printed map[string]string
		failed  bool
		said    string
	}{
		{name: "passed", printed: both},
		{name: "failed", outcome: agentproc.Outcome{ExitCode: 1}, printed: both},
		{name: "125", outcome: agentproc.Outcome{ExitCode: 125}},
		{name: "128", outcome: agentproc.Outcome{ExitCode: 128}},
		{name: "not executable", outcome: agentproc.Outcome{ExitCode: 126}, printed: both, failed: true, said: "an error"},
		{name: "not found", outcome: agentproc.Outcome{ExitCode: 127}, printed: output("a line\n"), failed: true, said: "a line"},
		{name: "signal", outcome: agentproc.Outcome{ExitCode: -1, Signal: "killed"}, failed: true},
		{name: "stopped", stopped: true, printed: both, failed: true, said: "an error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ran(t, c.outcome, c.printed)
			err := r.NotRun(c.stopped)
			if !c.failed {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, &NoAnswerError{Argv: r.Argv, Ran: c.outcome, Output: c.said}, err)
			prosetest.Text(t, err)
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	const most = moderator.CommandOutput
	for _, c := range []struct {
		name    string
		code    int
		printed map[string]string
		status  string
		output  string
		cut     bool
	}{
		{"nothing", 0, nil, "passed", "", false},
		{"empty", 0, output(""), "passed", "", false},
		{"passed", 0, output("ok\n"), "passed", "ok\n", false},
		{"failed", 1, output("FAIL"), "failed", "FAIL", false},
		{"negative", -1, output("x"), "failed", "x", false},
		{"just fits", 0, output("x" + strings.Repeat("a", most-1)), "passed", "x" + strings.Repeat("a", most-1), false},
		{"one too many", 0, output("xy" + strings.Repeat("a", most-1)), "passed", "y" + strings.Repeat("a", most-1), true},
		{"a character is cut", 0, output("€" + strings.Repeat("a", most-1)), "passed", strings.Repeat("a", most-1), true},
		{"a long character is cut", 0, output("😀" + strings.Repeat("a", most-3)), "passed", strings.Repeat("a", most-3), true},
		{"no text", 0, output("a\xffb"), "passed", "a\uFFFDb", false},
		{"no text at all", 0, output(strings.Repeat("\x80", most+1)), "passed", "\uFFFD", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ran(t, agentproc.Outcome{ExitCode: c.code}, c.printed).Status()
			require.NoError(t, err)
			assert.Equal(t, extract.Output{Value: map[string]any{
				"$status": c.status, "exitCode": int64(c.code), "output": c.output, "truncated": c.cut,
			}}, got)
		})
	}
	// A link in place of the file isn't followed.
	r := ran(t, agentproc.Outcome{}, nil)
	require.NoError(t, os.Symlink("/dev/null", r.Dir.File(runfiles.OutputFile)))
	_, err := r.Status()
	require.Error(t, err)
}

func role(t *testing.T, schema map[string]any) extract.Role {
	t.Helper()
	r, err := extract.NewRole(schema)
	require.NoError(t, err)
	return r
}

func TestData(t *testing.T) {
	t.Parallel()
	number := map[string]any{
		"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}, "$status": map[string]any{"type": "string"}},
		"required": []any{"n"},
	}
	for _, c := range []struct {
		name    string
		json    bool
		printed string
		value   any
		body    string
		suspend bool
		refused bool
	}{
		{name: "json", json: true, printed: ` {"n": 1} ` + "\n", value: map[string]any{"n": int64(1)}},
		{name: "two values", json: true, printed: `{"n": 1} {"n": 2}`, refused: true},
		{name: "no value", json: true, printed: "", refused: true},
		{name: "no json", json: true, printed: "n: 1", refused: true},
		{name: "other data", json: true, printed: `{"n": "one"}`, refused: true},
		{name: "a field twice", json: true, printed: `{"n": 1, "n": 2}`, refused: true},
		{name: "suspends", json: true, printed: `{"$status": "$SUSPEND", "reason": "why"}`, value: map[string]any{"$status": "$SUSPEND", "reason": "why"}, suspend: true},
		{name: "text", printed: "---\nn: 2\n---\nSo \xff be it.\n", value: map[string]any{"n": int64(2)}, body: "So \uFFFD be it.\n"},
		{name: "json as text", printed: `{"n": 1}`, refused: true},
		{name: "other text", printed: "---\nm: 2\n---\n", refused: true},
		{name: "empty text", printed: "", refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ran(t, agentproc.Outcome{Stderr: "its end"}, output(c.printed))
			got, err := r.Data(t.Context(), c.json, role(t, number))
			if c.refused {
				var none *NoAnswerError
				require.ErrorAs(t, err, &none)
				assert.Equal(t, r.Argv, none.Argv)
				assert.Equal(t, "its end", none.Output)
				assert.NotEmpty(t, none.Reason)
				prosetest.Text(t, err)
				return
			}
			require.NoError(t, err)
			assert.EqualValues(t, fmt.Sprint(c.value), fmt.Sprint(got.Value))
			assert.Equal(t, c.suspend, got.Suspend != nil)
			assert.Equal(t, c.body, got.Body)
		})
	}
	_, err := ran(t, agentproc.Outcome{}, nil).Data(t.Context(), true, role(t, number))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Output with too many bytes isn't read.
func TestDataIsBounded(t *testing.T) {
	t.Parallel()
	text := role(t, map[string]any{"type": "object"})
	for size, fits := range map[int64]bool{dataKept: true, dataKept + 1: false} {
		r := ran(t, agentproc.Outcome{ExitCode: 3}, output(`{}`))
		require.NoError(t, os.Truncate(r.Dir.File(runfiles.OutputFile), size)) // a hole
		_, err := r.Data(t.Context(), true, text)
		var none *NoAnswerError
		require.ErrorAs(t, err, &none)
		assert.Equal(t, fits, strings.HasPrefix(none.Reason, "its output"), none.Reason)
		assert.Equal(t, 3, none.Ran.ExitCode)
	}
}

// detail makes the detail of a command and reads its turns.
func detail(t *testing.T, r Ran) (*fsstore.Store, cas.Hash, protocol.Detail, []protocol.Turn) {
	t.Helper()
	ctx := t.Context()
	s := castest.NewStore(t, cas.XXH3)
	b := cas.NewBatch(s, time.Now)
	d, err := r.Detail(ctx, b, 7)
	require.NoError(t, err)
	h, err := b.Add(ctx, d)
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	var turns []protocol.Turn
	for i, turn := range d.Turns {
		got, err := cas.Read[protocol.Turn](ctx, s, turn)
		require.NoError(t, err)
		assert.Equal(t, i, got.Index)
		assert.EqualValues(t, 7, got.AtMs)
		turns = append(turns, got)
	}
	return s, h, d, turns
}

func TestDetail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		code    int
		printed map[string]string
		tools   []string
		last    string
	}{
		{"nothing", 0, nil, nil, "[exit status 0]"},
		{"output", 2, output("one\ntwo\n"), []string{"one\ntwo\n"}, "one\ntwo\n[exit status 2]"},
		{"a line that does not end", 0, output("one"), []string{"one"}, "one\n[exit status 0]"},
		{"both", 1, map[string]string{runfiles.StderrFile: "bad\n", runfiles.OutputFile: "good\n"}, []string{"bad\n", "good\n"}, "good\n[exit status 1]"},
		{"pieces", 0, output(strings.Repeat("a", OutputPiece) + "b"), []string{strings.Repeat("a", OutputPiece), "b"}, ""},
		{"a whole piece", 0, output(strings.Repeat("a", OutputPiece)), []string{strings.Repeat("a", OutputPiece)}, ""},
		{"a character between pieces", 0, output(strings.Repeat("a", OutputPiece-1) + "é!"), []string{strings.Repeat("a", OutputPiece-1), "é!"}, ""},
		{"no text", 0, output("a\xff"), []string{"a\uFFFD"}, "a\uFFFD\n[exit status 0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ran(t, agentproc.Outcome{ExitCode: c.code}, c.printed)
			s, h, d, turns := detail(t, r)
			assert.Equal(t, protocol.CaptureTurns, d.Capture)
			assert.Equal(t, fmt.Sprintf("exit status %d", c.code), d.Outcome)
			require.Len(t, turns, len(c.tools)+2)
			first, last := turns[0], turns[len(turns)-1]
			assert.Equal(t, protocol.TurnAssistant, first.Role)
			assert.Equal(t, []protocol.ToolCall{{ID: "1", Name: "run", Args: map[string]any{"argv": []any{"make", "test"}, "env": map[string]any{"TAG": "v1\n"}}}}, first.ToolCalls)
			for i, want := range c.tools {
				assert.Equal(t, protocol.TurnTool, turns[i+1].Role)
				assert.Equal(t, "1", turns[i+1].ToolCallID)
				assert.True(t, want == turns[i+1].Content, "turn %d", i+1)
			}
			assert.Equal(t, protocol.TurnAssistant, last.Role)
			if c.last != "" {
				assert.Equal(t, c.last, last.Content)
			}
			argv, env, err := Command(t.Context(), s, h, "")
			require.NoError(t, err)
			assert.Equal(t, r.Argv, argv)
			assert.Equal(t, r.Env, env)
		})
	}
}

// The beginning and the end of too much output are kept.
func TestDetailOfMuch(t *testing.T) {
	t.Parallel()
	const half = 3 * OutputPiece / 2
	begin, end := "begin"+strings.Repeat("a", half-5), strings.Repeat("z", half-3)+"end"
	for more, note := range map[int]string{0: "", 1: "\n[1 bytes are left out]\n", 5 << 20: "\n[5242880 bytes are left out]\n"} {
		r := ran(t, agentproc.Outcome{}, output(begin+strings.Repeat("-", more)+end))
		w := turns{batch: cas.NewBatch(castest.NewStore(t, cas.XXH3), time.Now)}
		w.addFile(t.Context(), r.Dir.File(runfiles.OutputFile), 2*half)
		require.NoError(t, w.err)
		all := ""
		for i := range w.turns {
			all += content(t, w, i)
		}
		assert.True(t, begin+note+end == all, more)
	}
}

func content(t *testing.T, w turns, i int) string {
	t.Helper()
	turn, err := cas.Read[protocol.Turn](t.Context(), w.batch, w.turns[i])
	require.NoError(t, err)
	return turn.Content
}

// counting is a store that may refuse nodes.
type counting struct {
	cas.Store
	puts int
	err  error
}

// Put implements [cas.Store].
func (s *counting) Put(ctx context.Context, nodes ...cas.Node) error {
	s.puts++
	return errors.Join(s.err, s.Store.Put(ctx, nodes...))
}

func TestTurnsArePut(t *testing.T) {
	t.Parallel()
	full := errors.New("no space")
	for _, c := range []struct {
		turns, puts int
		err         error
	}{{3, 0, nil}, {4, 1, nil}, {7, 1, nil}, {8, 2, nil}, {4, 1, full}, {9, 1, full}} {
		s := &counting{Store: castest.NewStore(t, cas.XXH3), err: c.err}
		w := turns{batch: cas.NewBatch(s, time.Now)}
		for i := range c.turns {
			w.add(t.Context(), protocol.Turn{Role: protocol.TurnTool, ToolCallID: "1", Content: strings.Repeat(string(rune('a'+i)), OutputPiece)})
		}
		require.ErrorIs(t, w.err, c.err)
		assert.Equal(t, c.puts, s.puts, c)
		if c.err != nil { // nothing is added, and no file is read
			assert.Len(t, w.turns, 4)
			w.addFile(t.Context(), "/dev/null", outputKept)
			assert.Len(t, w.turns, 4)
		}
	}
}

func TestDetailFails(t *testing.T) {
	t.Parallel()
	r := ran(t, agentproc.Outcome{}, nil)
	require.NoError(t, os.Symlink("/dev/null", r.Dir.File(runfiles.StderrFile)))
	_, err := r.Detail(t.Context(), cas.NewBatch(castest.NewStore(t, cas.XXH3), time.Now), 0)
	require.Error(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ran(t, agentproc.Outcome{}, nil).Detail(ended, cas.NewBatch(castest.NewStore(t, cas.XXH3), time.Now), 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestArgv(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := castest.NewStore(t, cas.XXH3)
	b := cas.NewBatch(s, time.Now)
	call := protocol.ToolCall{ID: "1", Name: "run", Args: map[string]any{"argv": []any{"a", "b c", 1}}}
	for _, c := range []struct {
		turns []protocol.Turn
		want  []string
	}{
		{nil, nil},
		{[]protocol.Turn{{Role: protocol.TurnAssistant, Content: "x"}}, nil},
		{[]protocol.Turn{{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{call}}}, []string{"a", "b c", ""}},
		{[]protocol.Turn{{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{call, {ID: "2", Name: "x"}}}}, nil},
		{[]protocol.Turn{{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: "1", Name: "run", Args: "argv"}}}}, []string{}},
	} {
		d := protocol.Detail{Capture: protocol.CaptureTurns, Turns: []cas.Hash{}}
		for _, turn := range c.turns {
			h, err := b.Add(ctx, turn)
			require.NoError(t, err)
			d.Turns = append(d.Turns, h)
		}
		h, err := b.Add(ctx, d)
		require.NoError(t, err)
		got, _, err := Command(ctx, b, h, "")
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	_, _, err := Command(ctx, s, "0000000000000", "")
	require.ErrorIs(t, err, cas.ErrNotFound)
	h, err := b.Add(ctx, protocol.Detail{Capture: protocol.CaptureTurns, Turns: []cas.Hash{"0000000000000"}})
	require.NoError(t, err)
	_, _, err = Command(ctx, b, h, "")
	require.ErrorIs(t, err, cas.ErrNotFound)
}

func TestWholeRunes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "a": 1, "ab": 2, "é": 2, "a€": 4, "a😀": 5, "a\xc3": 1, "a\xe2\x82": 1, "a\xf0\x9f\x98": 1, "a\x80\x80": 3, "a\xff": 2, "\xc3": 1, "aé\xe2": 3,
	} {
		assert.Equal(t, want, WholeRunes([]byte(text)), "%q", text)
	}
}

func TestTurnAtWork(t *testing.T) {
	t.Parallel()
	assert.Equal(t, protocol.Turn{Role: protocol.TurnTool, ToolCallID: "1", Content: "x"}, Turn("x"))
}

func TestNoAnswerText(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]*NoAnswerError{
		"why":    {Argv: []string{"a b"}, Ran: agentproc.Outcome{ExitCode: 3}, Reason: "it lies"},
		"signal": {Argv: []string{"a"}, Ran: agentproc.Outcome{ExitCode: -1, Signal: "killed"}},
		"126":    {Argv: []string{"a"}, Ran: agentproc.Outcome{ExitCode: 126}, Output: "x"},
		"127":    {Argv: []string{"a"}, Ran: agentproc.Outcome{ExitCode: 127}},
	} {
		prosetest.Text(t, e, name)
	}
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command string
		err           error
		hints         int
	}{
		{"not on PATH", "lint", exec.ErrNotFound, 1},
		{"no such file", "lint", fs.ErrNotExist, 1},
		{"a path", "tools/lint", fs.ErrNotExist, 0},
		{"not executable", "lint", fs.ErrPermission, 0},
		{"of the workspace", "lint", &proc.InsideError{Path: "/w/lint", Dir: "/w"}, 1},
	} {
		missing := &agentproc.NotFoundError{Command: c.command, Err: c.err}
		e := CannotStart("check", missing)
		require.ErrorIs(t, e, missing, c.name)
		assert.Len(t, hints.All("", e), c.hints, c.name)
		prosetest.Error(t, e, protocol.CodeAgent, c.name)
	}
}

// disk is a file system with one failing operation.
type disk struct {
	durable.FS
	fails string
}

var errDisk = errors.New("disk")

func (d disk) failure(op string) error {
	if d.fails == op {
		return errDisk
	}
	return nil
}

// Rename implements [durable.FS].
func (d disk) Rename(from, to string) error {
	if err := d.failure("rename"); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

// WriteTemp implements [durable.FS].
func (d disk) WriteTemp(path string, data []byte, mode os.FileMode, f durable.Flush) (string, error) {
	if err := d.failure("temp"); err != nil {
		return "", err
	}
	temp, err := d.FS.WriteTemp(path, data, mode, f)
	if err == nil && d.failure("open") != nil { // removed by another process
		err = d.FS.Remove(temp)
	}
	return temp, err
}

// If secrets cannot be hidden, the file is removed and no other is left.
func TestHide(t *testing.T) {
	t.Parallel()
	const key = "sk-0123456789abcdef"
	printed := map[string]string{runfiles.StderrFile: "err " + key + "\n", runfiles.OutputFile: "out " + key + key, "other": key}
	const hidden = secret.Hidden
	for _, c := range []struct {
		name, fails string
		secrets     []string
		want        map[string]string
		err         error
	}{
		{"nothing is secret", "", nil, printed, nil},
		{"another secret", "", []string{"another secret"}, printed, nil},
		{"hidden", "", []string{key}, map[string]string{runfiles.StderrFile: "err " + hidden + "\n", runfiles.OutputFile: "out " + hidden, "other": key}, nil},
		{"no temporary file", "temp", []string{key}, map[string]string{"other": key}, errDisk},
		{"no open", "open", []string{key}, map[string]string{"other": key}, fs.ErrNotExist},
		{"no rename", "rename", []string{key}, map[string]string{"other": key}, errDisk},
		{"nothing is secret on a bad disk", "temp", nil, printed, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ran(t, agentproc.Outcome{}, printed)
			require.ErrorIs(t, Hide(disk{durable.OS(), c.fails}, secret.NewSet(c.secrets...), r.Dir), c.err)
			got := map[string]string{}
			entries, err := os.ReadDir(string(r.Dir))
			require.NoError(t, err)
			for _, e := range entries {
				text, err := os.ReadFile(r.Dir.File(e.Name()))
				require.NoError(t, err)
				got[e.Name()] = string(text)
			}
			assert.Equal(t, c.want, got)
		})
	}
	require.NoError(t, Hide(durable.OS(), secret.NewSet(key), ran(t, agentproc.Outcome{}, nil).Dir))
}

// A secret is found across the chunks in which a file is read.
func TestHideAcrossPieces(t *testing.T) {
	t.Parallel()
	const key = "sk-0123456789abcdef"
	before := strings.Repeat("a", OutputPiece-5)
	r := ran(t, agentproc.Outcome{}, output(before+key+"b"))
	require.NoError(t, Hide(durable.OS(), secret.NewSet(key), r.Dir))
	text, err := os.ReadFile(r.Dir.File(runfiles.OutputFile))
	require.NoError(t, err)
	assert.True(t, before+secret.Hidden+"b" == string(text))
}

// Arguments too long for any system are an error of the workflow, not of the machine.
func TestTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 128<<10)
	require.NoError(t, TooLong([]string{"sh", long[1:]}, map[string]string{"A": long[3:]}))
	for _, err := range []error{TooLong([]string{"sh", long}, nil), TooLong([]string{"sh"}, map[string]string{"A": long[2:]}), TooLong(slices.Repeat([]string{long[1:]}, 13), nil)} {
		require.ErrorIs(t, err, syscall.E2BIG)
		require.False(t, protocol.OfMachine(err))
		prosetest.Text(t, CannotStart("use", err.(*agentproc.NotFoundError)).Message)
	}
}
