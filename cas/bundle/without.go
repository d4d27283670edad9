package bundle

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Without is a bundle's files with some contents left out.
type Without struct {
	file *File
	from source
	gone map[protocol.Tree]bool
	by   map[protocol.Tree]protocol.Tree // of the directories that were looked into
	has  map[protocol.Tree]bool          // of what the bundle's states lead to
	made map[protocol.Tree][]byte        // directories
}

// Without leaves contents out of the bundle's files, which Check has found whole.
func (f *File) Without(ctx context.Context, gone map[protocol.Tree]bool) *Without {
	w := &Without{
		file: f, from: f, gone: gone, by: map[protocol.Tree]protocol.Tree{},
		has: map[protocol.Tree]bool{}, made: map[protocol.Tree][]byte{},
	}
	for _, id := range f.order {
		w.has[id] = true
	}
	if f.base != nil {
		w.from = standing{ctx, f}
	}
	return w
}

// Tree returns the state that stands for one: the state itself if it holds none of the contents.
// A directory in which nothing is left is left out, too, as git has none.
func (w *Without) Tree(id protocol.Tree) (protocol.Tree, error) {
	if len(w.gone) == 0 {
		return id, nil
	}
	if by, known := w.by[id]; known {
		return by, nil
	}
	content, _, err := w.from.object(id, kindDir, true)
	if err != nil {
		return "", err
	}
	entries, err := parseTree(id, content)
	if err != nil {
		return "", err
	}
	_, size := functionOf(id)
	empty := objectID(kindDir, nil, size)
	var kept []byte
	for _, e := range entries {
		is := e.id
		if e.mode == modeDir {
			if is, err = w.Tree(e.id); err != nil {
				return "", err
			}
		}
		if w.gone[e.id] || is == empty && is != e.id {
			continue
		}
		sum, err := hex.DecodeString(string(is[strings.IndexByte(string(is), ':')+1:]))
		if err != nil {
			return "", err
		}
		kept = append(fmt.Appendf(kept, "%s %s\x00", e.mode, e.name), sum...)
	}
	by := objectID(kindDir, kept, size)
	if by != id && !w.has[by] {
		w.made[by] = kept
	}
	w.by[id] = by
	return by, nil
}

// Objects yields what is left of the bundle's objects of one hash function, and the directories that
// were made anew. Tree must have been asked for all states before.
func (w *Without) Objects(function string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, id := range w.left(function) {
			kind := w.file.objects[id].kind
			content, _, err := w.file.object(id, kind, true)
			if !yield(Object{Dir: kind == kindDir, Content: content}, err) || err != nil {
				return
			}
		}
		for id, content := range w.made {
			if id.Function() == function && !yield(Object{Dir: true, Content: content}, nil) {
				return
			}
		}
	}
}

// Count is how many Objects yields.
func (w *Without) Count(function string) int {
	n := len(w.left(function))
	for id := range w.made {
		if id.Function() == function {
			n++
		}
	}
	return n
}

// Has reports whether Objects yields one.
func (w *Without) Has(id protocol.Tree) bool {
	_, made := w.made[id]
	return made || w.has[id] && w.stays(id)
}

func (w *Without) stays(id protocol.Tree) bool {
	by, looked := w.by[id]
	return !w.gone[id] && (!looked || by == id)
}

// left are the bundle's objects that are neither left out nor made anew.
func (w *Without) left(function string) (ids []protocol.Tree) {
	for _, id := range w.file.order {
		if id.Function() == function && w.stays(id) {
			ids = append(ids, id)
		}
	}
	return ids
}
