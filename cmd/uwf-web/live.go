package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/united-workforce/uwf/util/home"
)

const (
	settle   = 50 * time.Millisecond // that several changes may take to be told as one
	ping     = 20 * time.Second      // so that a lost connection is noticed
	lookAt   = time.Second           // how often files are looked at where the system does not tell of them
	maxLives = 24                    // pages that are told at once: each takes a watch of the system
)

// events tells a page, for as long as it is open, that something has changed.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if s.lives.Add(1) > maxLives {
		s.lives.Add(-1)
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "too many live pages are open")
		return
	}
	defer s.lives.Add(-1)
	id := r.URL.Query().Get("thread")
	if id != "" && !validThread(id) {
		refuse(w, http.StatusNotFound, "there is no such thread")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	out := http.NewResponseController(w)
	say := func(word string) bool {
		_ = out.SetWriteDeadline(s.env.Now().Add(ping)) // whoever does not listen has gone
		_, err := fmt.Fprint(w, word)
		return err == nil && out.Flush() == nil
	}
	if !say("retry: 2000\ndata: begin\n\n") {
		return
	}
	changed := changes(r.Context(), s.engine.Reader.Dirs, id, r.URL.Query().Get("seen"))
	tick := time.NewTicker(ping)
	defer tick.Stop()
	for {
		word := ": still here\n\n"
		select {
		case <-r.Context().Done():
			return
		case _, open := <-changed:
			if !open {
				return
			}
			word = "data: changed\n\n"
		case <-tick.C:
		}
		if !say(word) {
			return
		}
	}
}

// changes tells, until ctx ends, that the files have changed which say how threads
// stand; thread: also those of its step in flight. Changes that nobody has taken are
// told as one. What has changed since seen was printed is told at once; "": nothing was.
func changes(ctx context.Context, dirs home.Dirs, thread, seen string) <-chan struct{} {
	out := make(chan struct{}, 1)
	watcher, unwatched := watched(dirs, thread)
	now := prints(dirs, thread)
	if seen != "" && seen != now {
		tell(out)
	}
	go func() {
		defer close(out)
		if unwatched == nil {
			listen(ctx, watcher, dirs, thread, out)
			return
		}
		poll(ctx, dirs, thread, now, out)
	}()
	return out
}

func watched(dirs home.Dirs, thread string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(dirs.Home); err != nil {
		_ = w.Close()
		return nil, err
	}
	if thread != "" {
		_ = w.Add(filepath.Dir(dirs.Run(thread))) // either may come later
		_ = w.Add(dirs.Run(thread))
	}
	return w, nil
}

func listen(ctx context.Context, w *fsnotify.Watcher, dirs home.Dirs, thread string, out chan<- struct{}) {
	defer w.Close()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return
		case ev, open := <-w.Events:
			if !open {
				return
			}
			if thread != "" && ev.Has(fsnotify.Create) && (ev.Name == dirs.Run(thread) ||
				ev.Name == filepath.Dir(dirs.Run(thread))) {
				_ = w.Add(ev.Name)
				_ = w.Add(dirs.Run(thread))
			}
			if !waiting {
				waiting = true
				settled.Reset(settle)
			}
		case _, open := <-w.Errors: // some were lost
			if !open {
				return
			}
			if !waiting {
				waiting = true
				settled.Reset(settle)
			}
		case <-settled.C:
			waiting = false
			tell(out)
		}
	}
}

func poll(ctx context.Context, dirs home.Dirs, thread, before string, out chan<- struct{}) {
	look := time.NewTicker(lookAt)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if now := prints(dirs, thread); now != before {
			before = now
			tell(out)
		}
	}
}

func tell(out chan<- struct{}) {
	select {
	case out <- struct{}{}:
	default: // it is told already
	}
}

// prints changes with the files.
func prints(dirs home.Dirs, thread string) string {
	sum := fnv.New64a()
	look := []string{dirs.Home}
	if thread != "" {
		look = append(look, dirs.Run(thread))
	}
	for _, dir := range look {
		entries, _ := os.ReadDir(dir) // what is not there yet has no entries
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				fmt.Fprintln(sum, entry.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}
