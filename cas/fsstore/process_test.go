package fsstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// childEnv makes this test binary a writer to a store: "<dir> <hash> <seed>".
const childEnv = "FSSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		if err := child(strings.Fields(job)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	tmpfstest.Main(prosetest.Of(m))
}

const childNodes = 40

// child waits for the starting signal, then puts and commits nodes. Half of them are common to all children,
// half its own, and reports each commit. A negative seed continues until it is killed; below -100, it compacts the
// store instead, and below -200, it redacts what it commits.
func child(job []string) error {
	dir, a := job[0], cas.Algorithm(job[1])
	seed, err := strconv.Atoi(job[2])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := fsstore.Open(ctx, dir, fsstore.Options{Hash: a})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	for i := 0; seed < -200; i++ {
		n, err := childSecret(a, os.Getpid(), i)
		if err == nil {
			err = s.Commit(ctx, n)
		}
		if err == nil {
			err = s.Redact(ctx, func() error { return nil }, cas.Tombstone{Hash: n.Hash, Type: n.Type})
		}
		if err != nil {
			return err
		}
		fmt.Println("redacted:" + string(n.Hash) + ":" + string(n.Payload[2:])) // after the head of the text
	}
	for seed < -100 {
		if err := compactOnce(ctx, s); err != nil {
			return err
		}
	}
	for i := 0; i < childNodes || seed < 0; i++ {
		nodes, err := childWork(a, seed, i)
		if err != nil {
			return err
		}
		if err := errors.Join(s.Put(ctx, nodes[0]), s.Commit(ctx, nodes...)); err != nil {
			return err
		}
		for _, n := range nodes {
			if _, err := s.Get(ctx, n.Hash); err != nil {
				return err
			}
		}
		fmt.Println(nodes[0].Hash, nodes[1].Hash)
	}
	return nil
}

// childSecret returns a node that a process redacts.
func childSecret(a cas.Algorithm, pid, i int) (cas.Node, error) {
	payload, err := cas.Encode(fmt.Sprintf("secret-%07d-%07d-%07d", i, pid, i*i*pid%1000))
	typ := a.MetaHash()
	return cas.Node{Hash: a.Sum(typ, payload), Type: typ, Payload: payload, Timestamp: 1}, err
}

func childWork(a cas.Algorithm, seed, i int) ([]cas.Node, error) {
	var nodes []cas.Node
	for _, text := range []string{fmt.Sprint("everybody's ", i), fmt.Sprintf("number %d of %d", i, seed)} {
		payload, err := cas.Encode(text)
		if err != nil {
			return nil, err
		}
		const typ = "7VQ43ZSJTEWA7"
		nodes = append(nodes, cas.Node{Hash: a.Sum(typ, payload), Type: typ, Payload: payload, Timestamp: int64(i)})
	}
	return nodes, nil
}

// start starts a child and returns a function that releases it.
func start(t *testing.T, dir string, a cas.Algorithm, seed int) (cmd *exec.Cmd, stderr *strings.Builder, run func()) {
	cmd, _, stderr, run = startReading(t, dir, a, seed)
	return cmd, stderr, run
}

func startReading(t *testing.T, dir string, a cas.Algorithm, seed int) (cmd *exec.Cmd, stdout io.Reader, stderr *strings.Builder, run func()) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", childEnv, dir, a, seed))
	stderr = &strings.Builder{}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err, "the child is ready")
	return cmd, out, stderr, func() {
		_, err := stdin.Write([]byte("x"))
		require.NoError(t, err)
	}
}

// Eight processes write to a store that doesn't exist yet, with half of their nodes in common.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cas")
	const children = 8
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	var runs []func()
	for seed := range children {
		cmd, stderr, run := start(t, dir, cas.XXH3, seed)
		cmds, outs, runs = append(cmds, cmd), append(outs, stderr), append(runs, run)
	}
	for _, run := range runs {
		run()
	}
	for i, cmd := range cmds {
		require.NoError(t, cmd.Wait(), outs[i])
	}
	require.Len(t, list(t, open(t, dir, fsstore.Options{})), childNodes*(children+1))
	requireSound(t, dir, 0)
}

// requireSound checks that every file below dir is a complete node after a kill, except at most temps
// temporary files.
func requireSound(t *testing.T, dir string, temps int) {
	t.Helper()
	s := open(t, dir, fsstore.Options{})
	for _, h := range list(t, s) {
		_, err := s.Get(context.Background(), h)
		require.NoError(t, err)
	}
	found := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && durable.IsTemp(path) {
			found++
		}
		return err
	}))
	require.LessOrEqual(t, found, temps)
}

// Two programs with different hash functions create the store concurrently: one wins, the other gets an
// error, and no node has the wrong hash.
func TestTwoProcessesMakeDifferentStores(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cas")
	algorithms := []cas.Algorithm{cas.XXH3, cas.XXH64, cas.XXH3, cas.XXH64}
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	var runs []func()
	for seed, a := range algorithms {
		cmd, stderr, run := start(t, dir, a, seed)
		cmds, outs, runs = append(cmds, cmd), append(outs, stderr), append(runs, run)
	}
	for _, run := range runs {
		run()
	}
	var errs []error
	for _, cmd := range cmds {
		errs = append(errs, cmd.Wait())
	}
	winner := open(t, dir, fsstore.Options{}).Algorithm()
	for i, a := range algorithms {
		if a == winner {
			require.NoError(t, errs[i], outs[i])
		} else {
			require.Error(t, errs[i])
			prosetest.Text(t, outs[i].String())
		}
	}
	requireSound(t, dir, 0)
}

// kill -9 at any moment leaves only complete nodes.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cas")
	for round := range 5 {
		cmd, _, run := start(t, dir, cas.XXH3, -1-round)
		run()
		before := len(list(t, open(t, dir, fsstore.Options{})))
		require.Eventually(t, func() bool {
			return len(list(t, open(t, dir, fsstore.Options{}))) > before+round*7
		}, 30*time.Second, time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		requireSound(t, dir, 2*(round+1))
	}
}

// Writers, compactors and a redactor are killed at any moment, again and again: everything that was committed is there,
// also for a reader that had the store open all the time, and everything that was redacted is gone.
func TestKilledWritersAndCompactors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cas")
	reader := open(t, dir, fsstore.Options{})
	require.NoError(t, reader.Make(t.Context(), 1))
	committed, redacted := map[cas.Hash]bool{}, map[cas.Hash]string{}
	for round := range 8 {
		var killed sync.WaitGroup
		var mu sync.Mutex
		for i, seed := range []int{-1 - 2*round, -2 - 2*round, -101, -102, -201} {
			cmd, out, _, run := startReading(t, dir, cas.XXH3, seed)
			lines := bufio.NewScanner(out)
			run()
			time.AfterFunc(time.Duration(20+7*i+11*round)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			killed.Go(func() {
				for lines.Scan() {
					mu.Lock()
					for word := range strings.FieldsSeq(lines.Text()) {
						if h := cas.Hash(word); h.Valid() {
							committed[h] = true
						} else if secret, ok := strings.CutPrefix(word, "redacted:"); ok {
							hash, text, _ := strings.Cut(secret, ":")
							redacted[cas.Hash(hash)] = text
						}
					}
					mu.Unlock()
				}
				_ = cmd.Wait()
			})
		}
		killed.Wait()
		for _, s := range []*fsstore.Store{reader, open(t, dir, fsstore.Options{})} {
			for h := range redacted {
				_, err := s.Get(t.Context(), h)
				require.ErrorAs(t, err, new(*cas.RedactedError))
			}
			for h := range committed {
				_, err := s.Get(t.Context(), h)
				require.NoError(t, err)
			}
		}
	}
	for _, text := range redacted {
		castest.RequireErased(t, dir, []byte(text))
	}
	t.Log(len(committed), "committed nodes,", len(redacted), "redacted")
	require.NotEmpty(t, committed)
}

func TestOneProcessSeesWhatAnotherPuts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	reader, writer := open(t, dir, fsstore.Options{}), open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "new")
	_, err := reader.Get(ctx, n.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.NoError(t, writer.Put(ctx, n))
	got, err := reader.Get(ctx, n.Hash)
	require.NoError(t, err)
	require.Equal(t, n, got)
}
