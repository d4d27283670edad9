package runfiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
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

// An agent that has closed its run directory may be running, so its thread must not be removed.
func TestAliveInClosedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, runfiles.LockFile), nil, 0o600))
	require.NoError(t, os.Chmod(dir, 0))
	if _, err := os.ReadDir(dir); err == nil {
		t.Skip("this user can read everything")
	}
	_, err := runfiles.Dir(dir).Alive()
	require.ErrorIs(t, err, os.ErrPermission)
	require.NoError(t, os.Chmod(dir, 0o700))
}
