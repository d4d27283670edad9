package runfiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/usertest"
)

const head = protocol.Hash("0123456789ABC")

// A message is delivered once, and again only if the attempt that received it failed.
func TestMailbox(t *testing.T) {
	t.Parallel()
	d := runfiles.Dir(t.TempDir())
	_, err := d.Post(durable.OS(), runfiles.Message{Text: "one", AtMs: 1}, "a")
	require.NoError(t, err)
	name, err := d.Post(durable.OS(), runfiles.Message{Text: "two", AtMs: 2}, "b")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(string(d), runfiles.MailboxDir, "000000000000003-c.json"), []byte("{"), 0o600))
	letters := d.Unread()
	require.Len(t, letters, 2, "what is no message is passed over")
	require.Equal(t, "one", letters[0].Text)
	require.NoError(t, d.MarkDelivered(letters[0], head))
	require.Len(t, d.Unread(), 1)
	require.NoError(t, d.SettleMail(head, false))
	require.Len(t, d.Unread(), 2)
	require.True(t, d.Withdraw(name))
	require.False(t, d.Withdraw(name))
}

// An unreadable line counts as an attempt with unknown usage.
func TestTries(t *testing.T) {
	t.Parallel()
	d := runfiles.Dir(t.TempDir())
	cost := 0.5
	tries := runfiles.Tries{}.Add(runfiles.Try{Try: protocol.Try{Error: "x", AtMs: 1, Usage: &protocol.Usage{CostUSD: &cost}}, Visit: "v", Alias: "a", GaveUp: true})
	lines, err := tries.Lines()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.File(runfiles.TriesFile), append(lines, "{\n"...), 0o600))
	got := d.Tries(nil)
	require.Len(t, got, 2)
	require.Equal(t, tries[0], got[0])
	require.False(t, got[1].Usage.IsPriced())
	require.Equal(t, []string{"a"}, got.GaveUp("v"))
	require.Len(t, d.Tries(tries.InStep()), 1, "what a step holds is done with")
}

// An agent that has closed its run directory may be running, and must not stop its thread for ever.
func TestAliveInClosedDirectory(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	path := t.TempDir()
	dir := runfiles.Dir(path)
	held, err := durable.TryLock(dir.File(runfiles.LockFile))
	require.NoError(t, err)
	for _, mode := range []os.FileMode{0, 0o500} {
		require.NoError(t, os.Chmod(path, mode))
		alive, err := dir.Alive()
		require.NoError(t, err)
		require.True(t, alive)
		require.NoError(t, os.WriteFile(dir.File(runfiles.StdoutFile), nil, 0o600))
	}
	require.NoError(t, held.Unlock())
	require.NoError(t, os.Chmod(path, 0))
	alive, err := dir.Alive()
	require.NoError(t, err)
	require.False(t, alive)
	outside := t.TempDir()
	require.NoError(t, os.Chmod(outside, 0o555))
	require.NoError(t, os.Symlink(outside, filepath.Join(path, "link")))
	require.False(t, runfiles.Dir(filepath.Join(path, "link")).Exists())
	info, err := os.Stat(outside)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o555), info.Mode().Perm())
}
