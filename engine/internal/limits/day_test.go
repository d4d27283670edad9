//go:build unix

package limits

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// today returns the limit per day in a new home, and its clock.
func today(t *testing.T, l protocol.DayLimits) (Day, *time.Time) {
	a, _ := accounts(t)
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	a.Now = func() time.Time { return now }
	return a.Today(&protocol.LimitsConfig{PerDay: &l}), &now
}

func usage(usd float64, tokens int64) *protocol.Usage {
	return &protocol.Usage{Turns: 1, CostUSD: &usd, OutputTokens: tokens}
}

func TestADayEndsAtMidnight(t *testing.T) {
	t.Parallel()
	d, now := today(t, protocol.DayLimits{CostUSD: 5, Tokens: 1000})
	midnight := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	require.Zero(t, d.UsedUp())
	require.NoError(t, d.Count("a", "", usage(4.99, 10)))
	require.Zero(t, d.UsedUp())
	require.NoError(t, d.Count("b", "", usage(0.01, 10)))
	require.Equal(t, midnight, d.UsedUp().Until().UTC())
	*now = midnight.Add(-time.Second)
	require.NotZero(t, d.UsedUp())

	// The day doesn't depend on the time zone of a process.
	*now = now.In(time.FixedZone("east", 9*3600))
	require.Equal(t, midnight, d.UsedUp().Until().UTC())
	*now = midnight
	require.Zero(t, d.UsedUp())
	require.NoError(t, d.Count("a", "", usage(0, 999)))
	require.Zero(t, d.UsedUp())
	require.NoError(t, d.Count("a", "", usage(0, 1)))
	prosetest.Text(t, d.UsedUp().Reason)

	// A clock that was set back starts no new day.
	*now = now.Add(-72 * time.Hour)
	require.NotZero(t, d.UsedUp())
	require.LessOrEqual(t, d.UsedUp().Until().Sub(*now), 24*time.Hour)
}

// A step counts once, however often it is adopted, even on the next day.
func TestAStepCountsOnce(t *testing.T) {
	t.Parallel()
	d, now := today(t, protocol.DayLimits{CostUSD: 1})
	for range 3 {
		require.NoError(t, d.Count("a", "STEP1", usage(0.4, 1)))
	}
	require.Equal(t, 0.4, d.read().CostUSD)
	*now = now.Add(24 * time.Hour)
	require.NoError(t, d.Count("a", "STEP1", usage(0.4, 1)))
	require.Zero(t, d.read().CostUSD)
	require.NoError(t, d.Settle("a"))
	require.Empty(t, d.read().Counted)
	require.NoError(t, d.Count("a", "STEP2", usage(0.4, 1)))
	require.Equal(t, 0.4, d.read().CostUSD)
}

// Each raise grants as much again, relative to the amount spent.
func TestADayIsRaised(t *testing.T) {
	t.Parallel()
	d, now := today(t, protocol.DayLimits{CostUSD: 1, Tokens: 1e6})
	said, _, err := d.Raise()
	require.NoError(t, err)
	require.Empty(t, said)
	require.NoError(t, d.Count("a", "", usage(1.5, 10)))
	said, _, err = d.Raise()
	require.NoError(t, err)
	prosetest.Text(t, said)
	require.NoError(t, d.Count("a", "", usage(0.9, 10)))
	require.Zero(t, d.UsedUp())
	require.NoError(t, d.Count("a", "", usage(0.1, 10)))
	require.NotZero(t, d.UsedUp())
	*now = now.Add(24 * time.Hour)
	require.NoError(t, d.Count("a", "", usage(1, 10)))
	require.NotZero(t, d.UsedUp())
}

// With a damaged sum, the limit counts as reached until midnight or a raise.
func TestADamagedSum(t *testing.T) {
	t.Parallel()
	d, now := today(t, protocol.DayLimits{CostUSD: 1})
	require.NoError(t, d.Count("a", "", usage(0.25, 10)))
	path := filepath.Join(d.of.Dir, dayFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Zero(t, d.UsedUp())
	for i := range whole {
		require.NoError(t, os.WriteFile(path, whole[:i], 0o600))
		require.NotZero(t, d.UsedUp(), "the first %d bytes", i)
	}
	require.NoError(t, d.Note())
	prosetest.Text(t, filepath.Base(d.UsedUp().Reason))
	said, _, err := d.Raise()
	require.NoError(t, err)
	require.NotEmpty(t, said)
	require.Zero(t, d.UsedUp())
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, d.Note())
	*now = now.Add(24 * time.Hour)
	require.Zero(t, d.UsedUp())

	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
	require.NotZero(t, d.UsedUp())
	require.Error(t, d.Count("a", "STEP1", usage(0.25, 10)))
}

// A file that can't be read now is not replaced.
func TestAnUnreadableSum(t *testing.T) {
	t.Parallel()
	d, _ := today(t, protocol.DayLimits{CostUSD: 1})
	require.NoError(t, d.Count("a", "", usage(0.25, 10)))
	path := filepath.Join(d.of.Dir, dayFile)
	require.NoError(t, os.Rename(path, path+".now"))
	require.NoError(t, os.Symlink(path, path)) // any error that says nothing of the file
	require.NotZero(t, d.UsedUp())
	require.Error(t, d.Count("a", "", usage(0.5, 10)))
	require.Error(t, d.Note())
	require.NoError(t, os.Rename(path+".now", path))
	require.Zero(t, d.UsedUp())
	spent, _ := d.Spent()
	require.InDelta(t, 0.25, spent.CostUSD, 0)
}

func TestManyCountAtOnce(t *testing.T) {
	t.Parallel()
	d, _ := today(t, protocol.DayLimits{CostUSD: 100})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				if err := d.Count("a", "", usage(0.1, 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 10.0, d.read().CostUSD)
}
