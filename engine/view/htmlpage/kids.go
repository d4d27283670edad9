package htmlpage

import (
	"cmp"
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

// Kids are threads that play a role together: counted, and those by name that matter
// most now.
type Kids struct {
	ID     string // of their place on the page
	Counts []KidCount
	Shown  []Kid
	More   int
	Lost   string // why some of them have no page
}

// KidCount is how many of them stand so.
type KidCount struct {
	N            int
	Status, Mood string
}

// Kid is one of them.
type Kid struct {
	Key, Name, Status, Mood, Link, Doing string // Name: as people read it
	Thread, Told                         string // its id, and the beginning of its task
	Below                                *Kids
}

// Few reports whether they need not be folded.
func (k *Kids) Few() bool { return len(k.Shown)+k.More <= kidsUnfolded }

// KidsOf counts children, and names at most so many; nil: there are none. link is the
// page of a thread, "" if it has none.
func KidsOf(id string, all []protocol.ChildOutput, most int, link func(thread string) string) *Kids {
	if len(all) == 0 {
		return nil
	}
	k := &Kids{ID: id}
	for _, c := range view.ByUrgency(all) {
		status, mood := string(c.Status), Mood(c.Status)
		if n := len(k.Counts); n > 0 && k.Counts[n-1].Status == status {
			k.Counts[n-1].N++
		} else {
			k.Counts = append(k.Counts, KidCount{N: 1, Status: status, Mood: mood})
		}
		if len(k.Shown) == most {
			k.More++
			continue
		}
		k.Shown = append(k.Shown, Kid{Thread: c.Thread, Key: c.Key, Name: Line(cmp.Or(c.Label, c.Key), Longest), Status: status, Mood: mood, Link: link(c.Thread)})
	}
	return k
}

// Tell adds the beginning of what each was told, unless its name says it.
func (k *Kids) Tell(ctx context.Context, r cas.Reader, heads map[string]protocol.Hash) {
	if k == nil {
		return
	}
	for i := range k.Shown {
		t, err := thread.Open(ctx, r, heads[k.Shown[i].Thread])
		if err != nil {
			continue // its own page says why
		}
		if told := Line(protocol.TitleOf(t.Task()), Longest); told != k.Shown[i].Name {
			k.Shown[i].Told = told
		}
	}
}
