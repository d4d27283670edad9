package tools

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
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
	found         []fileMatches

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

// run searches files, whose names are sorted.
func (g *grep) run(ctx context.Context, names []string) error {
	groups := byDir(names)
	found := make([][]fileMatches, len(groups))
	done := make([]bool, len(groups))
	var next atomic.Int64
	var mu sync.Mutex
	finished, matches := 0, 0 // of the groups that are done without a gap
	finish := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		for done[i] = true; finished < len(groups) && done[finished]; finished++ {
			for _, f := range found[finished] {
				matches += g.weight(f)
			}
		}
		if matches >= g.limit {
			g.enough.Store(true)
		}
	}
	var wg sync.WaitGroup
	for range min(workers(), len(groups)) {
		wg.Go(func() {
			at := g.p.seeker()
			for {
				i := int(next.Add(1) - 1)
				if i >= len(groups) || context.Cause(ctx) != nil || g.total.Load() >= maxCounted && g.enough.Load() {
					return
				}
				found[i] = g.group(ctx, groups[i], at)
				finish(i)
			}
		})
	}
	wg.Wait()
	g.found = slices.Concat(found...)
	return context.Cause(ctx)
}

func (g *grep) weight(f fileMatches) int {
	if g.filesOnly {
		return 1
	}
	return f.count
}

// byDir groups the files of one directory, which is then opened once for them.
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

func (g *grep) group(ctx context.Context, in group, at *seeker) []fileMatches {
	d, err := g.w.folder(filepath.FromSlash("./" + in.dir))
	if err != nil {
		g.unread.Add(int64(len(in.names)))
		return nil
	}
	defer d.close()
	var found []fileMatches
	for _, base := range in.names {
		if context.Cause(ctx) != nil {
			return found
		}
		text, err := d.read(base, maxGrepBytes, &at.buf)
		switch {
		case errors.Is(err, errLarge):
			g.large.Add(1)
		case err != nil && !errors.Is(err, fs.ErrNotExist): // git knows files that have been deleted
			g.unread.Add(1)
		}
		if err != nil || len(text) == 0 || isBinary(text) || !at.worth(text) {
			continue
		}
		if f := g.matches(in.dir+base, withoutCR(text), at); f.count > 0 {
			found = append(found, f)
		}
	}
	return found
}

// isBinary reports whether the beginning shows that this is not text, as git does.
func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 }

// withoutCR is a text with plain line ends, or $ would not match.
func withoutCR(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}
