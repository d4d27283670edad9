package fileheads_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

const (
	h1 = protocol.Hash("4EAEYQKFHTJ23")
	h2 = protocol.Hash("108DB063KRQWW")
	h3 = protocol.Hash("44P8EP6N3NXZ5")
)

func open(t *testing.T) (*fileheads.Heads, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	return fileheads.Open(dir, durable.OS()), dir
}

// with opens an index with this file content, as left by a person or a power cut.
func with(t *testing.T, file, text string) (*fileheads.Heads, string) {
	t.Helper()
	x, dir := open(t)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(ids(text)), 0o644))
	return x, dir
}

func text(t *testing.T, dir, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	return string(data)
}

// unsummed returns a file without its checksum line.
func unsummed(t *testing.T, dir, file string) string {
	t.Helper()
	data := text(t, dir, file)
	if strings.HasPrefix(data, "# sum: crc32c-") {
		_, data, _ = strings.Cut(data, "\n")
	}
	return data
}

func activeThreads(t *testing.T, x *fileheads.Heads) (map[string]protocol.Hash, []string) {
	t.Helper()
	found := map[string]protocol.Hash{}
	var problems []string
	for h, err := range x.Heads(t.Context()) {
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		found[h.Thread] = h.Hash
	}
	return found, problems
}

func ended(thread string, head protocol.Hash) heads.Ended {
	return heads.Ended{Thread: thread, Workflow: h3, Head: head, Status: protocol.StatusCompleted, CompletedAt: 1700000000000}
}

func TestLifeOfAThread(t *testing.T) {
	t.Parallel()
	x, dir := open(t)
	ctx := t.Context()

	_, err := x.Head(ctx, id("b"))
	require.ErrorIs(t, err, heads.ErrNoThread, "before the home exists")
	_, err = x.Ended(ctx, id("b"))
	require.ErrorIs(t, err, heads.ErrNoThread)

	require.NoError(t, x.Add(ctx, id("b-thread"), h1, heads.Facts{}))
	require.NoError(t, x.Add(ctx, id("a-thread"), h2, heads.Facts{}))
	require.ErrorIs(t, x.Add(ctx, id("b-thread"), h1, heads.Facts{}), heads.ErrExists)
	require.Equal(t, ids("@a-thread: 108DB063KRQWW\n@b-thread: 4EAEYQKFHTJ23\n"), unsummed(t, dir, "threads.yaml"))

	require.NoError(t, x.Move(ctx, id("b-thread"), h1, h2))
	var conflict *heads.ConflictError
	require.ErrorAs(t, x.Move(ctx, id("b-thread"), h1, h3), &conflict)
	require.Equal(t, heads.ConflictError{Thread: id("b-thread"), Want: h1, Got: h2}, *conflict)
	head, err := x.Head(ctx, id("b-thread"))
	require.NoError(t, err)
	require.Equal(t, h2, head)

	require.ErrorAs(t, x.Archive(ctx, ended(id("b-thread"), h1)), &conflict, "it is at another head")
	require.ErrorIs(t, x.Archive(ctx, heads.Ended{Thread: id("b-thread"), Head: h2, Status: protocol.StatusResumed}), &protocol.Error{Code: protocol.CodeInvalid},
		"such a line ends nothing: the thread would be nowhere")
	require.NoError(t, x.Archive(ctx, ended(id("b-thread"), h2)))
	require.ErrorAs(t, x.Archive(ctx, ended(id("b-thread"), h2)), &conflict, "it has ended already")
	require.Empty(t, conflict.Got)
	require.ErrorAs(t, x.Move(ctx, id("b-thread"), h2, h3), &conflict)
	_, err = x.Head(ctx, id("b-thread"))
	require.ErrorIs(t, err, heads.ErrNoThread)
	e, err := x.Ended(ctx, id("b-thread"))
	require.NoError(t, err)
	require.Equal(t, ended(id("b-thread"), h2), e)
	require.ErrorIs(t, x.Add(ctx, id("b-thread"), h1, heads.Facts{}), heads.ErrExists, "it has ended")

	require.NoError(t, x.Reopen(ctx, e, 1700000000001))
	require.ErrorIs(t, x.Reopen(ctx, e, 1700000000002), heads.ErrExists)
	head, err = x.Head(ctx, id("b-thread"))
	require.NoError(t, err)
	require.Equal(t, h2, head)
	_, err = x.Ended(ctx, id("b-thread"))
	require.ErrorIs(t, err, heads.ErrNoThread, "it is active again")

	require.NoError(t, x.Move(ctx, id("b-thread"), h2, h3))
	require.NoError(t, x.Archive(ctx, ended(id("b-thread"), h3)))
	require.ErrorAs(t, x.Reopen(ctx, e, 1), &conflict, "it has ended elsewhere since")
	require.Equal(t, sums(strings.Join([]string{
		`{"thread":"@b-thread","workflow":"44P8EP6N3NXZ5","head":"108DB063KRQWW","status":"completed","completedAt":1700000000000}`,
		`{"thread":"@b-thread","workflow":"44P8EP6N3NXZ5","head":"108DB063KRQWW","status":"resumed","completedAt":1700000000001}`,
		`{"thread":"@b-thread","workflow":"44P8EP6N3NXZ5","head":"44P8EP6N3NXZ5","status":"completed","completedAt":1700000000000}`,
		"",
	}, "\n")), text(t, dir, "history.jsonl"))
	require.Equal(t, ids("@a-thread: 108DB063KRQWW\n"), unsummed(t, dir, "threads.yaml"))
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	x, dir := open(t)
	ctx := t.Context()
	_, err := x.Workflow(ctx, "solve-issue")
	require.ErrorIs(t, err, heads.ErrNoWorkflow)
	require.NoError(t, x.Register(ctx, "solve-issue", h1))
	require.NoError(t, x.Register(ctx, "a.b", h2))
	require.NoError(t, x.Register(ctx, "solve-issue", h3))
	h, err := x.Workflow(ctx, "solve-issue")
	require.NoError(t, err)
	require.Equal(t, h3, h)
	names, err := x.Workflows(ctx)
	require.NoError(t, err)
	require.Equal(t, []heads.Named{{Name: "a.b", Hash: h2}, {Name: "solve-issue", Hash: h3}}, names)
	require.Equal(t, "a.b: 108DB063KRQWW\nsolve-issue: 44P8EP6N3NXZ5\n", unsummed(t, dir, "registry.yaml"))
	for name, h := range map[string]protocol.Hash{"": h1, "x\xff": h1, "x": "nohash", "-x": h1, "a$(b)": h1} {
		require.ErrorIs(t, x.Register(ctx, name, h), &protocol.Error{Code: protocol.CodeInvalid})
	}

	// An invalid name in the file is reported, and identifies nothing.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "registry.yaml"), []byte("\"a$(touch x)b\": 108DB063KRQWW\ngood: 44P8EP6N3NXZ5\n"), 0o644))
	names, err = x.Workflows(ctx)
	require.NoError(t, err)
	require.Len(t, names, 2)
	require.NotEmpty(t, names[0].Problem)
	require.Empty(t, names[1].Problem)
	_, err = x.Workflow(ctx, "a$(touch x)b")
	require.ErrorIs(t, err, heads.ErrNoWorkflow)
}

func TestAFileThatAPersonHasReshaped(t *testing.T) {
	t.Parallel()
	want := map[string]protocol.Hash{id("a"): h1, id("b"): h2}
	for name, content := range map[string]string{
		"ours":              "@a: 4EAEYQKFHTJ23\n@b: 108DB063KRQWW\n",
		"not sorted":        "@b: 108DB063KRQWW\n@a: 4EAEYQKFHTJ23\n",
		"no last newline":   "@a: 4EAEYQKFHTJ23\n@b: 108DB063KRQWW",
		"comments":          "# mine\n@a: 4EAEYQKFHTJ23 # the login bug\n\n  # two\n@b: 108DB063KRQWW\n",
		"quotes":            "'@a': \"4EAEYQKFHTJ23\"\n\"@b\": '108DB063KRQWW'\n",
		"lower case":        "@a: 4eaeyqkfhtj23\n@b: 1o8dbo63krqww\n",
		"windows":           "\ufeff@a: 4EAEYQKFHTJ23\r\n@b: 108DB063KRQWW\r\n",
		"windows, reshaped": "\ufeff'@a': 4EAEYQKFHTJ23\r\n@b: 108DB063KRQWW\r\n",
		"one twice":         "@a: 4EAEYQKFHTJ23\n@b: 108DB063KRQWW\n@a: 4EAEYQKFHTJ23\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, dir := with(t, "threads.yaml", content)
			got, problems := activeThreads(t, x)
			require.Empty(t, problems)
			require.Equal(t, want, got)

			require.NoError(t, x.Move(t.Context(), id("b"), h2, h3))
			var comments string
			if strings.Contains(content, "# mine") {
				comments = "# mine\n# two\n"
			}
			require.Equal(t, ids(comments+"@a: 4EAEYQKFHTJ23\n@b: 44P8EP6N3NXZ5\n"), unsummed(t, dir, "threads.yaml"), "in our form again")
		})
	}
	for _, empty := range []string{"", "\n", "# nothing yet\n", "# sum: crc32c-"} {
		x, _ := with(t, "threads.yaml", empty)
		got, problems := activeThreads(t, x)
		require.Empty(t, got)
		require.Equal(t, strings.HasPrefix(empty, "# sum"), len(problems) > 0, "%q", empty)
	}
}

func TestALineThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, bad string }{
		{"no entry", "garbage"},
		{"no hash", "@bad: 4EAE"},
		{"two hashes", "@bad: 4EAEYQKFHTJ23\n@bad: 44P8EP6N3NXZ5"},
		{"open flow", "{@bad: 4EAEYQKFHTJ23"},
		{"list", "- @bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, dir := with(t, "threads.yaml", "@a: 4EAEYQKFHTJ23\n"+c.bad+"\n@c: 108DB063KRQWW\n")
			got, problems := activeThreads(t, x)
			require.Equal(t, map[string]protocol.Hash{id("a"): h1, id("c"): h2}, got, "the others are read")
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0], filepath.Join(dir, "threads.yaml")+":2: ")
			prosetest.Text(t, problems[0])

			if strings.Contains(c.bad, "@bad") {
				invalid := &protocol.Error{Code: protocol.CodeInvalid}
				_, err := x.Head(t.Context(), id("bad"))
				require.ErrorIs(t, err, invalid, "not: no such thread")
				require.ErrorIs(t, x.Add(t.Context(), id("bad"), h1, heads.Facts{}), invalid)
				require.ErrorIs(t, x.Move(t.Context(), id("bad"), h1, h2), invalid)
			}
			_, err := x.Head(t.Context(), id("d"))
			require.ErrorIs(t, err, heads.ErrNoThread)
			require.NoError(t, x.Move(t.Context(), id("c"), h2, h3), "the others go on")
			require.Equal(t, ids("@a: 4EAEYQKFHTJ23\n@c: 44P8EP6N3NXZ5\n"+c.bad+"\n"), unsummed(t, dir, "threads.yaml"), "and nothing is lost")
		})
	}
}

// TestManyAtOnce starts 50 threads concurrently, and all move one head.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	x, _ := open(t)
	ctx := t.Context()
	require.NoError(t, x.Add(ctx, id("shared"), h1, heads.Facts{}))
	const many = 50
	won := make(chan string, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			name := id(fmt.Sprintf("t%02d", i))
			if err := x.Add(ctx, name, h1, heads.Facts{}); err != nil {
				won <- err.Error()
			}
			err := x.Move(ctx, id("shared"), h1, h2)
			if err == nil {
				won <- "moved"
			} else if !errors.As(err, new(*heads.ConflictError)) {
				won <- err.Error()
			}
			if i%2 == 0 {
				if err := x.Archive(ctx, ended(name, h1)); err != nil {
					won <- err.Error()
				}
			}
		})
	}
	wg.Wait()
	close(won)
	var got []string
	for s := range won {
		got = append(got, s)
	}
	require.Equal(t, []string{"moved"}, got, "exactly one moves a head, and nothing fails")
	active, problems := activeThreads(t, x)
	require.Empty(t, problems)
	require.Len(t, active, many/2+1)
	n := 0
	for _, err := range x.History(ctx) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, many/2, n)
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	x, dir := open(t)
	held, err := durable.TryLock(filepath.Join(dir, "locks", "threads.lock"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, x.Add(ctx, id("a"), h1, heads.Facts{}), context.Canceled)
	_, err = x.Head(ctx, id("a"))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, held.Unlock())
}

func TestFailuresOfTheDiskChangeNothing(t *testing.T) {
	t.Parallel()
	x, dir := with(t, "threads.yaml", "@a: 4EAEYQKFHTJ23\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "history.jsonl"), 0o755))
	require.Error(t, x.Archive(t.Context(), ended(id("a"), h1)), "the history cannot be written")
	h, err := x.Head(t.Context(), id("a"))
	require.NoError(t, err)
	require.Equal(t, h1, h, "so it has not ended")
}
