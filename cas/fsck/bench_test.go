package fsck_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// BenchmarkFsck checks 10,000 nodes of a thread's kinds; BenchmarkGitFsck runs git fsck on as many loose
// objects with the same contents. The ratio must stay within the promised bound.
func BenchmarkFsck(b *testing.B) {
	w := newWorld(b, 0)
	batch := w.batch()
	for _, p := range turns(benchNodes) {
		_, err := batch.Add(context.Background(), p)
		require.NoError(b, err)
	}
	require.NoError(b, batch.Put(context.Background()))
	for b.Loop() {
		require.True(b, w.check(false).Sound())
	}
}

func BenchmarkGitFsck(b *testing.B) {
	git, err := exec.LookPath("git")
	if err != nil {
		b.Fatal("git is needed to compare with")
	}
	dir := b.TempDir()
	run := func(stdin string, args ...string) {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, "%s", out)
	}
	run("", "init", "-q")
	var paths strings.Builder
	for i, p := range turns(benchNodes) {
		payload, err := cas.Encode(p)
		require.NoError(b, err)
		name := fmt.Sprintf("%s/%d", dir, i)
		require.NoError(b, os.WriteFile(name, payload, 0o600))
		fmt.Fprintln(&paths, name)
	}
	run(paths.String(), "hash-object", "-w", "--stdin-paths")
	for b.Loop() {
		run("", "fsck", "--no-dangling")
	}
}

const benchNodes = 10_000

func turns(n int) []protocol.Turn {
	all := make([]protocol.Turn, n)
	for i := range all {
		all[i] = protocol.Turn{
			Index: i, Role: protocol.TurnAssistant, AtMs: time.Now().UnixMilli(),
			Content: strings.Repeat(fmt.Sprintf("what turn %d says, ", i), 20),
		}
	}
	return all
}
