package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Manifest says what a bundle is about. Its lists are sorted, by thread, name and
// hash.
type Manifest struct {
	Hash      cas.Algorithm `json:"hash"`
	Threads   []Thread      `json:"threads"`
	Workflows []Workflow    `json:"workflows"`
	Roots     []Root        `json:"roots"`
	// Trees are the states of files that the bundle holds: those that its steps name, or
	// that stand for them. A bundle that has some is of version 2.
	Trees []protocol.Tree `json:"trees,omitempty"`
	// Instead are what stands for states that steps name and of which something was taken
	// out. A bundle that has some is of version 3.
	Instead []Instead `json:"instead,omitempty"`
}

// Instead says that a state of files, which the bundle holds, stands for another one, which
// it does not hold.
type Instead struct {
	Tree protocol.Tree `json:"tree"` // that a step names
	By   protocol.Tree `json:"by"`
}

// Standing is the state of files in the bundle for one that a step names; "": there is none.
func (m Manifest) Standing(tree protocol.Tree) protocol.Tree {
	if at, ok := slices.BinarySearchFunc(m.Instead, tree, func(i Instead, t protocol.Tree) int { return cmp.Compare(i.Tree, t) }); ok {
		return m.Instead[at].By
	}
	if _, ok := slices.BinarySearch(m.Trees, tree); ok {
		return tree
	}
	return ""
}

// Thread is a thread as the index has it. Workflow, Status and CompletedAt are
// those of the history: an active thread has none.
type Thread struct {
	Thread      string          `json:"thread"`
	Head        cas.Hash        `json:"head"`
	Workflow    cas.Hash        `json:"workflow,omitempty"`
	Status      protocol.Status `json:"status,omitempty"`
	CompletedAt int64           `json:"completedAt,omitempty"`
	Seal        string          `json:"seal,omitempty"` // of the head, if it was sealed
	// Title is what a person calls it, in version 2.
	Title string `json:"title,omitempty"`
}

// Ended reports whether the thread has ended.
func (t Thread) Ended() bool { return t.Status != "" }

// Workflow is a name of the registry.
type Workflow struct {
	Name string   `json:"name"`
	Hash cas.Hash `json:"hash"`
}

// Root is a node that is exported for its own sake.
type Root struct {
	Hash cas.Hash `json:"hash"`
	Seal string   `json:"seal,omitempty"`
}

// roots are the nodes at which the walk begins, in its order.
func (m Manifest) roots() []cas.Hash {
	var roots []cas.Hash
	for _, t := range m.Threads {
		roots = append(roots, t.Head)
		if t.Workflow != "" {
			roots = append(roots, t.Workflow)
		}
	}
	for _, w := range m.Workflows {
		roots = append(roots, w.Hash)
	}
	for _, r := range m.Roots {
		roots = append(roots, r.Hash)
	}
	return roots
}

// sealed are the nodes for which the manifest has a seal.
func (m Manifest) sealed() []Root {
	var sealed []Root
	for _, t := range m.Threads {
		if t.Seal != "" {
			sealed = append(sealed, Root{Hash: t.Head, Seal: t.Seal})
		}
	}
	for _, r := range m.Roots {
		if r.Seal != "" {
			sealed = append(sealed, r)
		}
	}
	return sealed
}

// version is that of the bundle.
func (m Manifest) version() string {
	switch {
	case len(m.Instead) > 0:
		return takenOut
	case len(m.Trees) > 0:
		return withFiles
	}
	return version
}

// encode writes a manifest in its one form: sorted, lists never null.
func (m Manifest) encode() ([]byte, error) {
	m.Threads = sorted(m.Threads, func(a, b Thread) int { return cmp.Compare(a.Thread, b.Thread) })
	m.Workflows = sorted(m.Workflows, func(a, b Workflow) int { return cmp.Compare(a.Name, b.Name) })
	m.Roots = sorted(m.Roots, func(a, b Root) int { return cmp.Compare(a.Hash, b.Hash) })
	if len(m.Trees) == 0 {
		for i := range m.Threads {
			m.Threads[i].Title = ""
		}
	} else {
		m.Trees = sorted(m.Trees, cmp.Compare)
	}
	if len(m.Instead) > 0 {
		m.Instead = sorted(m.Instead, func(a, b Instead) int { return cmp.Compare(a.Tree, b.Tree) })
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return cas.Encode(m)
}

func sorted[T any](list []T, compare func(a, b T) int) []T {
	out := append([]T{}, list...)
	slices.SortFunc(out, compare)
	return out
}

// parseManifest reads a manifest and refuses any other form of it.
func parseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := (cas.Node{Payload: data}).Decode(&m); err != nil {
		return m, errors.Unwrap(err)
	}
	again, err := m.encode()
	if err != nil {
		return m, err
	}
	if !bytes.Equal(again, data) {
		return m, errors.New("it has an entry that this program does not know, or is not in order")
	}
	return m, nil
}

// check checks each entry by itself and that none comes twice.
func (m Manifest) check() error {
	if !m.Hash.Known() {
		return fmt.Errorf("unknown hash function %q", m.Hash)
	}
	if len(m.Threads)+len(m.Roots) == 0 {
		return errors.New("it names neither a thread nor a node")
	}
	for i, t := range m.Threads {
		if err := t.check(); err != nil {
			return fmt.Errorf("thread %q: %w", t.Thread, err)
		}
		if i > 0 && m.Threads[i-1].Thread == t.Thread {
			return fmt.Errorf("thread %s is there twice", t.Thread)
		}
	}
	for i, w := range m.Workflows {
		if err := checkName(w.Name); err != nil {
			return err
		}
		if !w.Hash.Valid() {
			return fmt.Errorf("workflow %s: %q is not a hash", w.Name, w.Hash)
		}
		if i > 0 && m.Workflows[i-1].Name == w.Name {
			return fmt.Errorf("workflow %s is there twice", w.Name)
		}
	}
	for i, r := range m.Roots {
		if !r.Hash.Valid() {
			return fmt.Errorf("root %q is not a hash", r.Hash)
		}
		if i > 0 && m.Roots[i-1].Hash == r.Hash {
			return fmt.Errorf("root %s is there twice", r.Hash)
		}
		if err := checkSeal(r.Seal); err != nil {
			return err
		}
	}
	for i, t := range m.Trees {
		if !t.Valid() {
			return fmt.Errorf("%q is not a tree", t)
		}
		if i > 0 && m.Trees[i-1] == t {
			return fmt.Errorf("tree %s is there twice", t)
		}
	}
	return m.checkInstead()
}

// checkInstead checks that what stands for a state is there, and that the state is not: so
// nothing stands for what stands for something else.
func (m Manifest) checkInstead() error {
	for i, s := range m.Instead {
		_, there := slices.BinarySearch(m.Trees, s.Tree)
		_, stands := slices.BinarySearch(m.Trees, s.By)
		switch {
		case !s.Tree.Valid() || s.Tree.Function() != s.By.Function():
			return fmt.Errorf("%q cannot stand for %q", s.By, s.Tree)
		case i > 0 && m.Instead[i-1].Tree == s.Tree:
			return fmt.Errorf("two trees stand for %s", s.Tree)
		case there:
			return fmt.Errorf("tree %s is there, and another one stands for it", s.Tree)
		case !stands:
			return fmt.Errorf("tree %s, which is to stand for %s, is not there", s.By, s.Tree)
		}
	}
	return nil
}

// check holds an id to what can be a file's name: it becomes one.
func (t Thread) check() error {
	switch {
	case !threadid.Valid(t.Thread):
		return threadid.ErrInvalid
	case !t.Head.Valid():
		return fmt.Errorf("its head %q is not a hash", t.Head)
	case t.Ended() && !isStatus(t.Status):
		return fmt.Errorf("a thread cannot have ended as %q", t.Status)
	case t.Ended() && t.Workflow != "" && !t.Workflow.Valid():
		return fmt.Errorf("its workflow %q is not a hash", t.Workflow)
	case !t.Ended() && (t.Workflow != "" || t.CompletedAt != 0):
		return errors.New("it has not ended, but has what only ended ones have")
	case !utf8.ValidString(t.Title) || utf8.RuneCountInString(t.Title) > protocol.MaxTitle:
		return errors.New("its title is not one")
	case t.CompletedAt < 0 || t.CompletedAt > lastMs:
		return fmt.Errorf("it ended at %d ms", t.CompletedAt)
	}
	return checkSeal(t.Seal)
}

// isStatus allows for the words that end a thread: the history takes no other.
func isStatus(s protocol.Status) bool {
	return s == protocol.StatusCompleted || s == protocol.StatusCancelled
}

// lastMs is the end of the year 9999.
const lastMs = 253402300799999

func checkSeal(text string) error {
	if text == "" {
		return nil
	}
	seal, err := cas.ParseSeal(text)
	if err == nil && seal.String() != text {
		err = fmt.Errorf("seal %q is not in lower case", text)
	}
	return err
}

func checkName(name string) error {
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return fmt.Errorf("the name %q of a workflow %s", name, problem)
	}
	return nil
}
