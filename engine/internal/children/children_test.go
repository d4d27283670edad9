package children_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
)

var place = children.Place{Thread: "01JZ0000000000000000000000", Head: "HEAD", Role: "panel"}

func child(key string, status protocol.Status) children.Child {
	k := children.Child{Child: moderator.Child{Key: key}, ID: key, Head: "X", Out: protocol.StepOutput{Status: status}}
	if status == protocol.StatusCompleted {
		k.Ended = &heads.Ended{Status: status}
	}
	return k
}

// The state of a parent follows from its children's states.
func TestSummarize(t *testing.T) {
	t.Parallel()
	const done, failed, asks, idle, runs = protocol.StatusCompleted, protocol.StatusError, protocol.StatusSuspended, protocol.StatusIdle, protocol.StatusRunning
	for want, all := range map[protocol.Status][][]protocol.Status{
		idle:                              {{}, {done, done}},
		protocol.StatusWaitingForChildren: {{done, idle}, {failed, runs}, {asks, protocol.StatusWaitingForChildren}},
		failed:                            {{done, failed}, {asks, failed, protocol.StatusRateLimited}, {protocol.StatusCorrupt}},
		protocol.StatusRateLimited:        {{done, protocol.StatusRateLimited, asks}},
		protocol.StatusSuspended:          {{done, asks, asks}},
	} {
		for _, statuses := range all {
			var kids children.Children
			for i, s := range statuses {
				kids = append(kids, child(string(rune('a'+i)), s))
			}
			var out protocol.StepOutput
			kids.Summarize(place, &out)
			require.Equal(t, want, out.Status, statuses)
			require.Len(t, out.Children, len(statuses))
		}
	}
	kids := children.Children{child("a", done), {Child: moderator.Child{Key: "b"}}}
	var out protocol.StepOutput
	kids.Summarize(place, &out)
	require.Equal(t, idle, out.Status, "the next step starts the other one")

	atItsEnd := child("b", done)
	atItsEnd.Ended = nil
	out = protocol.StepOutput{}
	children.Children{child("a", done), atItsEnd}.Summarize(place, &out)
	require.Equal(t, protocol.StatusWaitingForChildren, out.Status, "nobody has noted its end")
}

// A driver and a later reader report the same failed children.
func TestFailures(t *testing.T) {
	t.Parallel()
	why := fault.New(protocol.CodeAgent, "it crashed")
	b := child("b", protocol.StatusError)
	b.Out.Error = fault.Step(why)
	var out protocol.StepOutput
	children.Children{child("a", protocol.StatusCompleted), b, child("c", protocol.StatusCorrupt)}.Summarize(place, &out)
	seen := children.Failures{Place: place, Of: 3}
	require.NoError(t, seen.Err())
	seen.Add(b, why)
	seen.Add(child("c", protocol.StatusCorrupt), errors.New("x"))
	require.Equal(t, fault.Step(seen.Err()), out.Error)
	prosetest.Text(t, out.Error.Message)
	out.Error.Advise(func(why ...protocol.Reason) []string { return hints.Of("", why...) })
	prosetest.Text(t, out.Error.Hint)
}

// The number of a child's attempt differs from the numbers of attempts of all children.
func TestAttempt(t *testing.T) {
	t.Parallel()
	f := heads.Facts{Attempts: map[string]int{place.AttemptKey(""): 2, place.AttemptKey("a"): 3, place.AttemptKey("b/c"): 1}}
	require.Equal(t, 2, place.RetriesOfAll(f))
	require.Equal(t, 2003, place.Attempt(f, "a"))
	require.Equal(t, 2000, place.Attempt(f, "b"))
	f.Attempts[place.AttemptKey("a")] = 1003
	require.Equal(t, 1_000_002_003, place.Attempt(f, "a"), "not that of the third attempt after three retries of all")
}

// Labels are short, harmless and one line, for any item.
func TestLabelOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		item any
		want string
	}{
		{nil, ""},
		{"  one\ntwo", "one"},
		{int64(7), "7"},
		{map[string]any{"title": "", "name": "parser", "id": "x"}, "parser"},
		{map[string]any{"id": uint64(12), "deep": map[string]any{"title": "x"}}, "12"},
		{map[string]any{"problem": "unused variable", "file": "a.go", "deep": []any{"x"}}, "a.go · unused variable"},
		{map[string]any{"title": "a\x1b[2J\u202eb\tc"}, "a [2J b c"},
		{[]any{"x"}, "Fix it."},
		{strings.Repeat("日", 1<<20), strings.Repeat("日", 60) + "…"},
	} {
		got := children.LabelOf(moderator.Child{Key: "K", Item: tt.item, Prompt: "Fix it.\nNow."})
		require.Equal(t, tt.want, got)
	}
}

// A path of keys contains the items of the children that have one.
func TestBelow(t *testing.T) {
	t.Parallel()
	path, label := children.Below("", "", "docs", "")
	require.Equal(t, []string{"docs", ""}, []string{path, label})
	path, label = children.Below(path, label, "3WK", "parser")
	require.Equal(t, []string{"docs/3WK", "docs/parser"}, []string{path, label})
	path, label = children.Below(path, label, "tests", "")
	require.Equal(t, []string{"docs/3WK/tests", "docs/parser/tests"}, []string{path, label})
	require.Equal(t, "docs/3WK (docs/parser)", children.Named("docs/3WK", "docs/parser"))
}
