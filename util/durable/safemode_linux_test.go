package durable

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestSafeModeNeedsOneFileSystem(t *testing.T) {
	t.Parallel()
	mode, why := SafeMode(t.TempDir(), "/proc/none")
	require.Equal(t, Full, mode)
	prosetest.Text(t, why)

	mode, why = SafeMode("/proc/self", "/proc")
	require.Equal(t, Full, mode, "not a disk that is known to keep the order")
	prosetest.Text(t, why)
}

func TestSafeModeOfPlacesToBe(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	mode, why := SafeMode(home, home)
	laterMode, laterWhy := SafeMode(filepath.Join(home, "not", "made"), filepath.Join(home, "yet"))
	require.Equal(t, mode, laterMode)
	require.Equal(t, why, laterWhy)
	require.NotEmpty(t, why)
}

func TestIsJournalOf(t *testing.T) {
	t.Parallel()
	for journal, want := range map[string]bool{
		"sda1-8": true, "sda1-": false, "sda1": false, "sda12-8": false, "sda1-data-8": false, "dm-0-8": false,
	} {
		require.Equal(t, want, isJournalOf(journal, "sda1"), journal)
	}
	require.True(t, isJournalOf("dm-0-8", "dm-0"))
	require.False(t, isJournalOf("dm-0-8", "dm"), "that is the journal of dm-0")
}
