package names_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
)

// reasons returns the reasons of an error, and its code.
func reasons(err error) string {
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		return fmt.Sprint(err)
	}
	text := string(coded.Code)
	for _, r := range coded.Reasons {
		text += " " + r.Name
	}
	return text
}

// world has three threads of two roles and a child of the oldest. The oldest has five steps, the middle one
// is foreign, and the newest has ended.
func world(t *testing.T) (w *statustest.World, old, foreign, newest, child string, steps []protocol.Hash) {
	w = statustest.New(t)
	wf := w.Workflow(statustest.Line(map[string]protocol.Role{"writer": {}, "judge": {}, "idler": {}}, "writer", "judge", "idler"))
	old = w.Start(wf, heads.Facts{})
	for _, s := range []struct{ role, status string }{
		{"writer", "again"}, {"writer", "ok"}, {"judge", "again"}, {"judge", "again"}, {"judge", "ok"},
	} {
		steps = append(steps, w.Step(old, protocol.Step{Role: s.role}, statustest.Answer(s.status)))
	}
	foreign = w.Start(wf, heads.Facts{Imported: &heads.Imported{AtMs: 1}})
	child = w.Start(wf, heads.Facts{Parent: &heads.Parent{Thread: old, Key: "k"}})
	newest = w.Start(wf, heads.Facts{})
	w.End(newest, protocol.StatusCancelled)
	return w, old, foreign, newest, child, steps
}

func TestThread(t *testing.T) {
	t.Parallel()
	w, old, foreign, newest, child, steps := world(t)
	r := names.In(&w.Reader)
	r.Child = func(_ context.Context, parent, key string) (string, error) { return parent + " " + key, nil }
	for name, want := range map[string]string{
		old: old, "@": newest, "@^": old, "@{1}": old, "@{0}": newest, child: child, foreign: foreign,
		names.Short(old): old, names.Short(newest): newest, foreign[:len(foreign)-1]: foreign,
		"@^/security": old + " security", old + "/a": old + " a",
	} {
		id, err := r.Thread(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, want, id, name)
	}
	for name, want := range map[string]string{
		"@^^": "not_found too-few-threads", "@@": "not_found repeated-newest", "@^@1": "not_found names-step",
		"@9": "not_found no-such-step", names.Short(foreign): "not_found end-of-foreign-id", "nothing": "not_found no-such-thread",
		names.Short(child): "not_found end-of-foreign-id", "./x.yaml": "not_found names-path",
		string(steps[0]): "not_found names-step", "": "not_found no-such-thread", "@{x}": "not_found no-such-thread",
		"nothing@1": "not_found no-such-thread no-thread-in-address", old[:2]: "not_found",
		"01ARZ3NDEKTSV4RRFFQ69G5FAV": "not_found no-such-thread",
	} {
		_, err := r.Thread(t.Context(), name)
		require.Equal(t, want, reasons(err), "%s: %v", name, err)
	}
}

// @ isn't guessed, as the command may kill the thread.
func TestNewestIsNoGuess(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	r := names.In(&w.Reader)
	_, err := r.Thread(t.Context(), "@")
	require.Equal(t, "not_found no-thread-yet", reasons(err))
	wf := w.Workflow(statustest.Line(map[string]protocol.Role{"writer": {}}, "writer"))
	imported := w.Start(wf, heads.Facts{Imported: &heads.Imported{AtMs: 1}})
	_, err = r.Thread(t.Context(), "@")
	require.Equal(t, "not_found all-imported", reasons(err))
	r.Any = true
	id, err := r.Thread(t.Context(), "@")
	require.NoError(t, err)
	require.Equal(t, imported, id)
	r.Any = false
	w.Start(wf, heads.Facts{Imported: &heads.Imported{Lost: true}})
	_, err = r.Thread(t.Context(), "@")
	require.Equal(t, "invalid newest-lost", reasons(err))
}

func TestStep(t *testing.T) {
	t.Parallel()
	w, old, _, _, _, steps := world(t)
	r := names.In(&w.Reader)
	chain, err := thread.Open(t.Context(), w.Store, w.At(old))
	require.NoError(t, err)
	for place, want := range map[string]protocol.Hash{
		"0": chain.StartHash, "1": steps[0], "-1": steps[4], "5": steps[4], "-5": steps[0], "": steps[4],
		"writer": steps[1], "writer@1": steps[0], "judge@-3": steps[2], "judge@3": steps[4],
	} {
		of, h, err := r.Step(t.Context(), "@^@"+place)
		require.NoError(t, err, place)
		require.Equal(t, old, of)
		require.Equal(t, want, h, place)
		h, err = r.StepIn(t.Context(), old, place)
		require.NoError(t, err, place)
		require.Equal(t, want, h, place)
	}
	_, h, err := r.Step(t.Context(), string(steps[2]))
	require.NoError(t, err)
	require.Equal(t, steps[2], h)
	for place, want := range map[string]string{
		"6": "not_found no-such-step", "-6": "not_found no-such-step", "writer@3": "not_found no-such-step", "writer@x": "usage no-visit-number",
		"writer@0": "usage no-visit-number", "idler": "not_found no-such-step", "nobody": "not_found no-such-step",
	} {
		_, err := r.StepIn(t.Context(), old, place)
		require.Equal(t, want, reasons(err), place)
	}
	_, _, err = r.Step(t.Context(), old)
	require.Equal(t, "not_found names-thread", reasons(err))
	_, _, err = r.Step(t.Context(), "7777777777777")
	require.Equal(t, "not_found no-node", reasons(err))
	var near *protocol.Error
	_, err = r.StepIn(t.Context(), old, "wroter")
	require.ErrorAs(t, err, &near)
	require.Equal(t, map[string]string{"thread": old, "near": "writer"}, near.Reasons[0].Data)
}

func TestBefore(t *testing.T) {
	t.Parallel()
	w, old, _, _, _, steps := world(t)
	chain, err := thread.Open(t.Context(), w.Store, w.At(old))
	require.NoError(t, err)
	for h, want := range map[protocol.Hash]protocol.Hash{
		steps[4]: steps[3], steps[0]: chain.StartHash, chain.StartHash: chain.StartHash,
	} {
		before, err := names.Before(t.Context(), chain, old, h)
		require.NoError(t, err)
		require.Equal(t, want, before)
	}
	_, err = names.Before(t.Context(), chain, old, "7777777777777")
	require.Equal(t, "not_found no-such-step", reasons(err))
}

func TestCut(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"@-1": {"@", "-1"}, "@@-1": {"@", "-1"}, "@^@-1": {"@^", "-1"}, "@{2}@3": {"@{2}", "3"}, "@^^": {"@^^", ""}, "@": {"@", ""},
	} {
		of, place := names.CutNewest(name)
		require.Equal(t, want, [2]string{of, place}, name)
	}
	for name, want := range map[string]bool{"@/a": true, "a/b/c": true, "/a": false, "a/": false, "./a": false, "~/a": false, "a/b.yaml": false} {
		_, _, ok := names.CutChild(name)
		require.Equal(t, want, ok, name)
	}
}

// Without the history, another thread would be the newest, or the only one with a prefix.
func TestUnreadableHistory(t *testing.T) {
	t.Parallel()
	w, old, _, _, _, _ := world(t)
	path := filepath.Join(filepath.Dir(w.Reader.Dirs.Home), "history.jsonl")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	for _, name := range []string{"@", old[:len(old)-1]} {
		_, err := names.In(&w.Reader).Thread(t.Context(), name)
		require.ErrorContains(t, err, path, name)
	}
}
