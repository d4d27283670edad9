//go:build unix

package limits

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestAccountsAreDistinct(t *testing.T) {
	t.Parallel()
	require.Equal(t, Account{"claude-code", "claude-code"}, NewAccount("claude-code", nil))
	seen := map[string]bool{}
	for _, a := range []Account{
		NewAccount("codex", nil), NewAccount("codex", []string{"a"}), NewAccount("codex", []string{"KEY=b"}), NewAccount("../codex", nil), NewAccount("..-codex", nil),
	} {
		require.False(t, seen[a.ID], a.ID)
		require.True(t, filepath.IsLocal(a.ID))
		require.NotContains(t, a.ID, "KEY")
		seen[a.ID] = true
	}
}

func accounts(t *testing.T) (Accounts, *[]string) {
	var said []string
	return Accounts{Dir: filepath.Join(t.TempDir(), "limits"), FS: durable.OS(), Now: time.Now, Warn: func(text string) { said = append(said, text) }}, &said
}

var claude = NewAccount("claude", nil)

// A damaged limit, or something other than a file, blocks no agent and is replaced.
func TestADamagedLimitDoesNotCount(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, said := accounts(t)
	terms := Terms{Policy: rounds(1)}
	p, _, err := a.Enter(ctx, claude, terms)
	require.NoError(t, err)
	p.Refused(Refusal{RetryAt: time.Now().Add(time.Hour), Reason: strings.Repeat("<", 20<<10)})
	p.Leave()
	path := filepath.Join(a.Dir, "claude.json")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	_, held, err := a.Enter(ctx, claude, terms)
	require.NoError(t, err)
	require.Equal(t, 1, held.Refusals)
	require.Len(t, a.Active(), 1)
	for i := range whole {
		require.NoError(t, os.WriteFile(path, whole[:i], 0o600))
		p, held, err := a.Enter(ctx, claude, terms)
		require.NoError(t, err)
		require.Zero(t, held, "the first %d bytes", i)
		p.Leave()
	}
	prosetest.Text(t, (*said)[0])
	require.Len(t, *said, len(whole))
	require.NoFileExists(t, path, "nobody is warned again")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
	p, _, err = a.Enter(ctx, claude, terms)
	require.NoError(t, err)
	require.Equal(t, 1, p.Refused(Refusal{}).Refusals, "it cannot be written, and the thread is parked all the same")
	p.Leave()
}

// An impossible record is ignored: a count that overflows, or a time in the future, as left by a clock that
// was set back.
func TestAnImplausibleLimitDoesNotCount(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMilli()
	hour := time.Hour.Milliseconds()
	for name, l := range map[string]Limit{
		"no refusal":              {UntilMs: now - 1, NotedMs: now - 9, Refusals: 0},
		"fewer than none":         {UntilMs: now - 1, NotedMs: now - 9, Refusals: -5},
		"more than can be":        {UntilMs: now - 1, NotedMs: now - 9, Refusals: math.MaxInt},
		"a clock that was set":    {UntilMs: now + 240*hour, NotedMs: now + 239*hour, Refusals: 1},
		"in the year 292 million": {UntilMs: math.MaxInt64, NotedMs: now - 9, Refusals: 1},
		"before all time":         {UntilMs: 9, NotedMs: math.MinInt64, Refusals: 1},
	} {
		a, said := accounts(t)
		require.NoError(t, os.MkdirAll(a.Dir, 0o700))
		data, err := json.Marshal(l)
		require.NoError(t, err)
		path := filepath.Join(a.Dir, "claude.json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		for range 2 {
			p, held, err := a.Enter(t.Context(), claude, Terms{Policy: rounds(1)})
			require.NoError(t, err)
			require.Zero(t, held, name)
			prosetest.Text(t, (*said)[0], name)
			got := p.Refused(Refusal{RetryAt: time.Now().Add(time.Minute)})
			require.Equal(t, 1, got.Refusals, name)
			require.InDelta(t, now+60_000, got.UntilMs, 30_000, name)
			p.Served()
			p.Leave()
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
	}
}

// A link in place of a limit is replaced. Its target is neither read nor written.
func TestALinkIsReplaced(t *testing.T) {
	t.Parallel()
	a, _ := accounts(t)
	require.NoError(t, os.MkdirAll(a.Dir, 0o700))
	other, path := filepath.Join(t.TempDir(), "other"), filepath.Join(a.Dir, "claude.json")
	require.NoError(t, os.WriteFile(other, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(other, path))
	terms := Terms{Policy: rounds(1)}
	p, _, err := a.Enter(t.Context(), claude, terms)
	require.NoError(t, err)
	p.Refused(Refusal{RetryAt: time.Now().Add(time.Hour)})
	p.Leave()
	_, held, err := a.Enter(t.Context(), claude, terms)
	require.NoError(t, err)
	require.Equal(t, 1, held.Refusals)
	data, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
}

// A wait for a reset holds no slot, as agents of the same name may have other accounts.
func TestWhoWaitsForAResetHasNoPlace(t *testing.T) {
	t.Parallel()
	a, _ := accounts(t)
	terms := Terms{Policy: rounds(3), Places: 1}
	p, _, err := a.Enter(t.Context(), claude, terms)
	require.NoError(t, err)
	p.Refused(Refusal{RetryAt: time.Now().Add(time.Minute)})
	p.Leave()
	waits, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	began := make(chan bool)
	go func() {
		t := terms
		var once sync.Once
		t.Waits = func(time.Duration) error { once.Do(func() { close(began) }); return nil }
		_, _, err := a.Enter(waits, claude, t)
		ended <- err
	}()
	<-began
	soon, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	p, _, err = a.Enter(soon, NewAccount("claude", []string{"other"}), terms)
	require.NoError(t, err)
	p.Leave()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// After the reset of a limit, one agent tries, and the others wait for its outcome.
func TestOneScoutAsksFirst(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, granted := range []bool{true, false} {
		a, _ := accounts(t)
		p, _, err := a.Enter(ctx, claude, Terms{})
		require.NoError(t, err)
		p.Refused(Refusal{RetryAt: time.Now().Add(time.Millisecond)})
		p.Leave()
		terms := Terms{Policy: rounds(3)}
		scout, held, err := a.Enter(ctx, claude, Terms{Policy: rounds(3), Since: time.Now().Add(time.Second)})
		require.NoError(t, err)
		require.Zero(t, held)
		require.NotNil(t, scout.scout)
		var through, stopped atomic.Int64
		var others sync.WaitGroup
		for range 8 {
			others.Go(func() {
				p, held, err := a.Enter(ctx, claude, terms)
				if err == nil && held == (Limit{}) {
					through.Add(1)
					p.Leave()
				} else if err == nil {
					stopped.Add(1)
				}
			})
		}
		if granted {
			scout.Served()
			scout.Leave()
			others.Wait()
			require.EqualValues(t, 8, through.Load())
			require.Empty(t, a.Active())
		} else {
			require.Zero(t, through.Load())
			scout.Refused(Refusal{RetryAt: time.Now().Add(time.Hour)})
			scout.Leave()
			others.Wait()
			require.EqualValues(t, 8, stopped.Load())
		}
		scout.Leave()
	}
}

// If the scout's lock doesn't work, an agent runs nevertheless.
func TestWithoutAScoutsLock(t *testing.T) {
	t.Parallel()
	a, _ := accounts(t)
	p, _, err := a.Enter(t.Context(), claude, Terms{})
	require.NoError(t, err)
	p.Refused(Refusal{RetryAt: time.Now().Add(time.Millisecond)})
	p.Leave()
	require.NoError(t, os.Mkdir(filepath.Join(a.Dir, "claude.scout"), 0o700))
	p, held, err := a.Enter(t.Context(), claude, Terms{Policy: rounds(3)})
	require.NoError(t, err)
	require.Zero(t, held)
	p.Leave()
}

// The success of an agent that started before a refusal doesn't end the limit.
func TestEarlierSuccessIsIgnored(t *testing.T) {
	t.Parallel()
	a, _ := accounts(t)
	begin := func() *Pass {
		p, held, err := a.Enter(t.Context(), claude, Terms{Policy: rounds(1)})
		require.NoError(t, err)
		require.Zero(t, held)
		return p
	}
	early, refused := begin(), begin()
	refused.started = early.started
	refused.Refused(Refusal{RetryAt: time.Now().Add(time.Hour)})
	early.started = early.started.Add(-time.Second)
	early.Served()
	require.Len(t, a.Active(), 1)
}

// A slot is freed when its process ends in any way, or with the pass, even if a process left behind by the
// agent still has its file open.
func TestPlacesAreFreed(t *testing.T) {
	t.Parallel()
	a, _ := accounts(t)
	terms := Terms{Places: 1}
	p, _, err := a.Enter(t.Context(), claude, terms)
	require.NoError(t, err)
	left := exec.Command("sleep", "60")
	left.ExtraFiles = p.Inherited()
	require.NoError(t, left.Start())
	defer func() {
		_ = left.Process.Kill()
		_ = left.Wait()
	}()
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err = a.Enter(soon, claude, terms)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	p.Leave()
	p, _, err = a.Enter(t.Context(), claude, terms)
	require.NoError(t, err)
	// If the engine is killed, its agent keeps the slot until it ends.
	orphan := exec.Command("sleep", "60")
	orphan.ExtraFiles = p.Inherited()
	require.NoError(t, orphan.Start())
	require.NoError(t, p.Inherited()[0].Close())
	held, err := try(filepath.Join(a.Dir, "claude.slot-1"))
	require.NoError(t, err)
	require.Nil(t, held)
	require.NoError(t, orphan.Process.Kill())
	_ = orphan.Wait()
	p, _, err = a.Enter(t.Context(), claude, terms)
	require.NoError(t, err)
	p.Leave()
}
