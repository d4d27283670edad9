package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
)

// grep is one search. Workers take directories in order, so that the first
// matches by path are known long before the last file is read; from then on
// matches are only counted.
type grep struct {
	w         *Workspace
	p         pattern
	limit     int
	around    int // lines
	filesOnly bool

	total         atomic.Int64 // matching lines
	large, unread atomic.Int64 // files
	enough        atomic.Bool
	found         [][]fileMatches // per directory

	shown, files int
}

// fileMatches is what is shown of a file.
type fileMatches struct {
	name  string
	lines []shownLine
	count int // of matches in lines
}

// group is files of one directory, sorted.
type group struct {
	dir   string
	names []string
}

func (g *grep) run(ctx context.Context, names []string) error {
	groups := byDir(names)
	g.found = make([][]fileMatches, len(groups))
	done := make([]bool, len(groups))
	var next atomic.Int64
	var mu sync.Mutex
	finished, matches := 0, 0 // of the groups that are done without a gap
	finish := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		for done[i] = true; finished < len(groups) && done[finished]; finished++ {
			for _, f := range g.found[finished] {
				matches += g.weight(f)
			}
		}
		if matches >= g.limit {
			g.enough.Store(true)
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, len(groups)) {
		wg.Go(func() {
			var buf, low []byte
			for {
				i := int(next.Add(1) - 1)
				if i >= len(groups) || context.Cause(ctx) != nil || g.total.Load() >= maxCounted && g.enough.Load() {
					return
				}
				g.found[i] = g.group(ctx, groups[i], &buf, &low)
				finish(i)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (g *grep) weight(f fileMatches) int {
	if g.filesOnly {
		return 1
	}
	return f.count
}

// byDir puts neighbours of one directory together: it is opened once for them.
func byDir(names []string) []group {
	const most = 64 // so that one large directory keeps all workers busy
	var groups []group
	for _, name := range names {
		dir, base := path.Split(name)
		n := len(groups)
		if n == 0 || groups[n-1].dir != dir || len(groups[n-1].names) == most {
			groups = append(groups, group{dir: dir})
			n++
		}
		groups[n-1].names = append(groups[n-1].names, base)
	}
	return groups
}

func (g *grep) group(ctx context.Context, in group, buf, low *[]byte) []fileMatches {
	root, err := g.w.root.OpenRoot(filepath.FromSlash("./" + in.dir))
	if err != nil {
		g.unread.Add(int64(len(in.names)))
		return nil
	}
	defer root.Close() // it was only read from
	var found []fileMatches
	for _, base := range in.names {
		if context.Cause(ctx) != nil {
			return found
		}
		text, err := g.read(root, base, buf)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // git knows files that have been deleted
			g.unread.Add(1)
		}
		if len(text) == 0 || !g.mayMatch(text, low) {
			continue
		}
		if f := g.matches(in.dir+base, text); f.count > 0 {
			found = append(found, f)
		}
	}
	return found
}

// read reads a text file; nothing of what is binary, too large or no file.
func (g *grep) read(root *os.Root, base string, buf *[]byte) ([]byte, error) {
	if info, err := root.Lstat(base); err != nil || !info.Mode().IsRegular() {
		return nil, err // a link's target is searched where it is
	}
	f, err := root.OpenFile(base, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read from
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	if info.Size() > maxGrepBytes {
		g.large.Add(1)
		return nil, nil
	}
	size := int(info.Size())
	if cap(*buf) < size {
		*buf = make([]byte, max(size, 64<<10))
	}
	n, err := io.ReadFull(f, (*buf)[:size])
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it has become shorter
	}
	text := (*buf)[:n]
	if bytes.IndexByte(text[:min(n, 8000)], 0) >= 0 {
		return nil, nil
	}
	if bytes.Contains(text, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) // or $ would not match
	}
	return text, err
}

// mayMatch looks for the words that every match holds, which is far cheaper than
// the expression.
func (g *grep) mayMatch(text []byte, low *[]byte) bool {
	if len(g.p.words) == 0 {
		return true
	}
	if g.p.fold {
		text = lower(text, low)
	}
	for _, w := range g.p.words {
		if bytes.Contains(text, []byte(w)) {
			return true
		}
	}
	return false
}

// lower is text with ASCII's capitals made small, in the memory of low.
func lower(text []byte, low *[]byte) []byte {
	*low = append((*low)[:0], text...)
	for i, c := range *low {
		if 'A' <= c && c <= 'Z' {
			(*low)[i] = c + 'a' - 'A'
		}
	}
	return *low
}
