package cliagent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// TestSessions checks that sessions are verified.
func TestSessions(t *testing.T) {
	t.Parallel()
	first := "S {session}\n" + good + "\n."
	tests := map[string]struct {
		adapter func(*cliagent.Adapter)
		between func(t *testing.T, b *table)
		plays   []string
		fails   bool // why the second step starts over; "" if it continues
		calls   int  // in both steps
	}{
		"goes on": {plays: []string{first}, calls: 2},
		"another id comes back": {
			plays: []string{"S other\nT I know nothing.\n!hang", first}, fails: true, calls: 3,
		},
		"another id, with its history": {
			adapter: func(a *cliagent.Adapter) { a.Sessions.Renames = true },
			plays:   []string{"S other\n" + good + "\n."}, calls: 2,
		},
		"the id changes on the way": {plays: []string{"S {session}\nC 1 x\nS rotated\nR 1 x\n" + good + "\n."}, calls: 2},
		"no id comes back":          {plays: []string{good + "\n.", first}, fails: true, calls: 3},
		"it is unknown": {
			plays: []string{"X error session_not_found who?\n!exit 1", first}, fails: true, calls: 3,
		},
		"it is too long": {plays: []string{"S {session}\nX error context", first}, fails: true, calls: 3},
		"another directory": {
			between: func(t *testing.T, b *table) { b.Cwd = t.TempDir() },
			plays:   []string{first}, fails: true, calls: 2,
		},
		"another directory is as good": {
			adapter: func(a *cliagent.Adapter) { a.Sessions.AnyDir = true },
			between: func(t *testing.T, b *table) { b.Cwd = t.TempDir() },
			plays:   []string{first}, calls: 2,
		},
		"nothing is known of it": {
			between: func(t *testing.T, b *table) {
				require.NoError(t, os.RemoveAll(filepath.Join(b.Home, "sessions", "uwf-toy", "records")))
			},
			plays: []string{first}, fails: true, calls: 2,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := toy()
			if tt.adapter != nil {
				tt.adapter(&a)
			}
			b := set(t, a, "").plays(first)
			began := b.step().Succeeded().Step.SessionID
			if tt.between != nil {
				tt.between(t, b)
			}
			got := b.plays(tt.plays...).step().Succeeded()
			calls := b.heard(tt.calls)
			final := calls[len(calls)-1]
			if !tt.fails {
				require.Equal(t, []string{"--resume", began}, final.Args[len(final.Args)-2:])
				require.NotContains(t, got.Detail.Outcome, "started over")
				return
			}
			require.Contains(t, final.Args, "--session")
			require.NotEqual(t, began, last(final.Args))
			require.Contains(t, final.Prompt, "the task", "the whole prompt")
			prosetest.Text(t, got.Detail.Outcome)
			prosetest.Text(t, got.Detail.Outcome)
			require.Equal(t, last(final.Args), got.Step.SessionID)
		})
	}
}

// A correction goes to the session. If that is lost, it is sent with the complete context.
func TestCorrections(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("S {session}\nT Done.\n.", "S {session}\n"+good+"\n.")
	b.step().Succeeded()
	calls := b.heard(2)
	require.Equal(t, []string{"--resume", last(calls[0].Args)}, calls[1].Args[len(calls[1].Args)-2:])
	require.NotContains(t, calls[1].Prompt, "the task")

	b = set(t, toy(), "").plays("S {session}\nT My answer.\n.", "S other\n!hang", "S {session}\n"+good+"\n.")
	got := b.step().Succeeded()
	calls = b.heard(3)
	require.Contains(t, calls[2].Prompt, "the task")
	require.Contains(t, calls[2].Prompt, "My answer.")
	require.Equal(t, last(calls[2].Args), got.Step.SessionID)
}

// A program without memory gets everything again.
func TestNoSessions(t *testing.T) {
	t.Parallel()
	a := toy()
	a.Sessions = cliagent.Sessions{None: true}
	b := set(t, a, "").plays("T My answer.\n.", good+"\n.", good+"\n.")
	b.step().Succeeded()
	calls := b.heard(2)
	require.Contains(t, calls[1].Prompt, "the task")
	require.Contains(t, calls[1].Prompt, "My answer.")
	b.step().Succeeded()
	require.Contains(t, b.heard(3)[2].Prompt, "the task")
}

// A fork continues in a copy and does not touch the session.
func TestForks(t *testing.T) {
	t.Parallel()
	a := toy()
	a.Sessions.Forks = true
	b := set(t, a, "").plays("S {session}\n"+good+"\nU 100 1\n.", "S copy\n"+good+"\nU 130 1.25\n.")
	original := b.step().Succeeded()
	fork := *b
	fork.Thread = b.Fork()
	got := fork.step().Succeeded()
	calls := b.heard(2)
	require.Equal(t, []string{"--fork", original.Step.SessionID}, calls[1].Args[len(calls[1].Args)-2:])
	require.Equal(t, "copy", got.Step.SessionID)
	require.EqualValues(t, 30, got.Step.Usage.InputTokens)
}

// A fork in another directory continues in a copy if the program's version supports that, and otherwise
// starts over.
func TestForksElsewhere(t *testing.T) {
	t.Parallel()
	for version, want := range map[cliagent.Version][2]string{cliagent.V(1, 2, 0): {"--fork", "copy"}, cliagent.V(1, 3, 0): {"--session", "{session}"}} {
		a := toy()
		a.Sessions.Forks = true
		a.Sessions.CopiesAnywhere = func(v cliagent.Version) bool { return v.AtLeast(version) }
		b := set(t, a, "").plays("S {session}\n"+good+"\n.", "S "+want[1]+"\n"+good+"\n.")
		b.step().Succeeded()
		fork := *b
		fork.Thread = b.Fork()
		fork.Cwd = t.TempDir()
		fork.step().Succeeded()
		require.Contains(t, b.heard(2)[1].Args, want[0])
	}
}

func TestResumeCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "resume: false").plays("S {session}\n"+good+"\n.", "S {session}\n"+good+"\n.")
	b.step().Succeeded()
	b.step().Succeeded()
	require.Contains(t, b.heard(2)[1].Args, "--session")
}

// An answer that is not a turn is recorded in the detail, even next to the runner's notes.
func TestAnswerOnly(t *testing.T) {
	t.Parallel()
	final := "S {session}\nF" + good[1:] + "\n."
	b := set(t, toy(), "").plays(final, "S other\n!hang", final)
	first := b.step().Succeeded()
	require.Len(t, first.Turns, 1)
	require.Equal(t, "final", string(first.Detail.Capture))
	again := b.step().Succeeded()
	require.Contains(t, again.Detail.Outcome, "started over")
	require.Len(t, again.Turns, 2)
	prosetest.Text(t, again.Turns[1].Content)
}

// The detail of a step quotes why a program lost its session, without secrets in it.
func TestLostSessionHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret = "secret-0123456789"
	b := set(t, toy(), "", "TOY_API_KEY="+secret).plays("S {session}\n"+good+"\n.", "X error session_not_found no access with "+secret, "S {session}\n"+good+"\n.")
	b.step().Succeeded()
	got := b.step().Succeeded()
	require.Contains(t, got.Detail.Outcome, "started over")
	require.NotContains(t, got.Detail.Outcome, secret)
}
