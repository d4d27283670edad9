package bench

import (
	"fmt"
	gobuild "go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// logRows measure the log: against git with the same contents, and what others notice of its upkeep.
func (w *world) logRows() []row {
	const steps = 1000 // 24 nodes and 55 kB each
	in := func(unit string, r row) row {
		r.unit = unit
		return r
	}
	return []row{
		versus("log/import of 24,000 nodes", w.importRich(steps), 1, "git fetch of as much", w.gitFetch(steps)),
		versus("log/fsck of 24,000 nodes", timed(w.fsck(steps)), 0.4, "git fsck", timed(w.gitFsck(steps))),
		in("MB", versus("log/bytes after gc", w.packedBytes(steps), 1, "git's pack", w.gitBytes(steps))),
		in("files", versus("log/files after gc", w.packedFiles(steps), 1, "10 files", constant(10))),
		versus("log/20 newest nodes of a pack", w.newest(steps, 20), 1, "1 ms", constant(1)),
		versus("log/any node of a pack", w.scattered(steps), 1, "0.6 ms", constant(0.6)),
		versus("log/slowest of 200 steps beside a gc", w.besideGC(true), 1, "100 ms + beside that of another store",
			func(b testing.TB) float64 { return 100 + w.besideGC(false)(b) }),
	}
}

// rich returns a home whose thread has about n steps as agents make them: ten turns, of which some are long.
func (w *world) rich(b testing.TB, n int) place {
	return w.begun(b, "rich", n, func(p place) {
		s, old := open(b, p)
		head := old
		for done := 0; done < n; {
			batch := cas.NewBatch(s, time.Now)
			for range min(100, n-done) {
				t, err := thread.Open(b.Context(), batch, head)
				require.NoError(b, err)
				head = w.richStep(b, s, batch, t)
				done++
			}
			require.NoError(b, batch.Commit(b.Context()))
		}
		require.NoError(b, fileheads.Open(p.home, durable.OS()).Move(b.Context(), p.thread, old, head))
	})
}

func (w *world) richStep(b testing.TB, s cas.Store, batch *cas.Batch, t *thread.Thread) cas.Hash {
	add := func(p protocol.Payload) cas.Hash {
		h, err := batch.Add(b.Context(), p)
		require.NoError(b, err)
		return h
	}
	i := t.Last.Index
	detail := protocol.Detail{SessionID: fmt.Sprint("session-", i), Capture: protocol.CaptureFinal}
	for k := range 10 {
		detail.Turns = append(detail.Turns, add(protocol.Turn{Index: 2 * k, Role: protocol.TurnAssistant,
			Content: fmt.Sprint("I look at part ", k, " of step ", i, " and see what is there.")}),
			add(protocol.Turn{Index: 2*k + 1, Role: protocol.TurnTool, Content: w.source(b, i*10+k, 5000), ToolCallID: fmt.Sprint("call_", k)}))
	}
	l := *t.Last
	l.Detail = add(detail)
	l.Prompt = new(add(protocol.Text(fmt.Sprint("prompt of step ", i, " ", w.source(b, i, 1500)))))
	before, err := batch.Get(b.Context(), l.Output)
	require.NoError(b, err)
	payload, err := cas.Encode(map[string]any{"$status": "again", "note": w.source(b, i+7, 300)})
	require.NoError(b, err)
	l.Output = s.Algorithm().Sum(before.Type, payload)
	require.NoError(b, s.Put(b.Context(), cas.Node{Hash: l.Output, Type: before.Type, Payload: payload, Timestamp: time.Now().UnixMilli()}))
	return another(b, batch, t, l)
}

// source returns a part of Go's own sources.
func (w *world) source(b testing.TB, i, size int) string {
	text := fixture(w, "Go's sources", func() string {
		var all strings.Builder
		err := filepath.WalkDir(filepath.Join(gobuild.Default.GOROOT, "src"), func(path string, e fs.DirEntry, err error) error {
			if filepath.Ext(path) != ".go" || !e.Type().IsRegular() || err != nil || all.Len() > 80<<20 {
				return err
			}
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		})
		require.NoError(b, err)
		return all.String()
	})
	at := i * 7919 * 13 % (len(text) - size)
	return strings.ToValidUTF8(text[at:at+size], "?")
}

// packed returns a copy of such a home after a gc, as far as its store is concerned.
func (w *world) packed(b testing.TB, n int) string {
	return fixture(w, fmt.Sprint("packed ", n), func() string {
		home := w.path(fmt.Sprint("packed-", n))
		require.NoError(b, os.CopyFS(home, os.DirFS(w.rich(b, n).home)))
		w.uwf(b, home, "cas", "gc", "--grace", "1ns")
		return home
	})
}

func (w *world) importRich(n int) side {
	return func(b testing.TB) float64 {
		bundle := fixture(w, fmt.Sprint("bundle ", n), func() string {
			p, path := w.rich(b, n), w.path(fmt.Sprint("rich-", n, ".uwfb"))
			w.uwf(b, p.home, "thread", "export", p.thread, "-o", path)
			return path
		})
		home := w.path(fmt.Sprint("imported-", w.fresh(1)))
		return timed(func(b testing.TB) { w.uwf(b, home, "thread", "import", bundle) })(b)
	}
}

func (w *world) gitFetch(n int) side {
	return func(b testing.TB) float64 {
		from, to := w.gitOfRich(b, n), w.path(fmt.Sprint("fetched-", w.fresh(1)))
		w.git(b, w.dir, "init", "-q", "--bare", to)
		return timed(func(b testing.TB) { w.git(b, to, "fetch", "-q", from, "main") })(b)
	}
}

func (w *world) gitOfRich(b testing.TB, n int) string { return w.gitWith(b, "rich", n, w.rich) }

func (w *world) fsck(n int) func(testing.TB) {
	return func(b testing.TB) { w.uwf(b, w.packed(b, n), "cas", "fsck") }
}

func (w *world) gitFsck(n int) func(testing.TB) {
	return func(b testing.TB) { w.git(b, w.gitOfRich(b, n), "fsck") }
}

func (w *world) packedBytes(n int) side {
	return func(b testing.TB) float64 {
		_, bytes := sizeOf(b, filepath.Join(w.packed(b, n), "cas"))
		return bytes
	}
}

func (w *world) packedFiles(n int) side {
	return func(b testing.TB) float64 {
		files, _ := sizeOf(b, filepath.Join(w.packed(b, n), "cas"))
		return files
	}
}

func (w *world) gitBytes(n int) side {
	return func(b testing.TB) float64 {
		_, bytes := sizeOf(b, filepath.Join(w.gitOfRich(b, n), ".git", "objects", "pack"))
		return bytes
	}
}

// sizeOf returns the number of files below a directory, and their size in MB.
func sizeOf(b testing.TB, dir string) (files, megabytes float64) {
	require.NoError(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			files, megabytes = files+1, megabytes+float64(info.Size())/1e6
		}
		return err
	}))
	return files, megabytes
}

// newest measures a process that reads the newest nodes of a packed store, in the order in which they refer to each
// other.
func (w *world) newest(n, nodes int) side {
	return func(b testing.TB) float64 {
		all := w.hashes(b, n)
		return timed(func(b testing.TB) { w.read(b, n, all[len(all)-nodes:]...) })(b)
	}
}

// scattered measures a read of a node by a process that has the pack open.
func (w *world) scattered(n int) side {
	return func(b testing.TB) float64 {
		all := w.hashes(b, n)
		const reads = 200
		hashes := make([]cas.Hash, reads)
		for i := range hashes {
			hashes[i] = all[i*7919%len(all)]
		}
		return timed(func(b testing.TB) { w.read(b, n, hashes...) })(b) / reads
	}
}

func (w *world) hashes(b testing.TB, n int) []cas.Hash {
	return fixture(w, fmt.Sprint("hashes ", n), func() []cas.Hash {
		s, err := fsstore.Open(b.Context(), filepath.Join(w.packed(b, n), "cas"), fsstore.Options{})
		require.NoError(b, err)
		all, err := s.InOrder(b.Context())
		require.NoError(b, err)
		return all
	})
}

func (w *world) read(b testing.TB, n int, hashes ...cas.Hash) {
	s, err := fsstore.Open(b.Context(), filepath.Join(w.packed(b, n), "cas"), fsstore.Options{})
	require.NoError(b, err)
	for _, h := range hashes {
		_, err := s.Get(b.Context(), h)
		require.NoError(b, err)
	}
}

// besideGC measures the slowest of 200 steps while 200,000 nodes are compressed again and again, in the same store or in
// another one, which is as much work for the machine.
func (w *world) besideGC(same bool) side {
	return func(b testing.TB) float64 {
		p := w.amid(b, 200_000)
		home := p.home
		if !same {
			home = fixture(w, "another store", func() string {
				to := w.path("another-store")
				require.NoError(b, os.CopyFS(to, os.DirFS(p.home)))
				return to
			})
		}
		s, err := fsstore.Open(b.Context(), filepath.Join(home, "cas"), fsstore.Options{})
		require.NoError(b, err)
		var slowest float64
		for steps := 0; steps < 200; {
			packed := make(chan error, 1)
			go func() { packed <- packAgain(b, s) }()
			for packing := true; packing; steps++ {
				slowest = max(slowest, timed(func(b testing.TB) { w.step(b, p) })(b))
				select {
				case err := <-packed:
					require.NoError(b, err)
					packing = false
				default:
				}
			}
		}
		return slowest
	}
}

// packAgain puts a node again, so that the pack isn't left as it is, and then does what gc --auto does.
func packAgain(b testing.TB, s *fsstore.Store) error {
	batch := cas.NewBatch(s, time.Now)
	_, err := batch.Add(b.Context(), protocol.Text(text(0)))
	if err == nil {
		err = batch.Put(b.Context())
	}
	if err != nil {
		return err
	}
	return gc.Pack(b.Context(), s, time.Now().Add(2*gc.DefaultGrace))
}
