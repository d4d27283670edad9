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
	settle   = 50 * time.Millisecond // changes within this time are reported as one
	ping     = 20 * time.Second      // detects a lost connection
	lookAt   = time.Second           // polling interval where the system does not report changes
	maxLives = 24                    // pages with live updates: each needs a system watch
)

// events sends an event to an open page for each change.
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
		refuse(w, http.StatusNotFound, "thread not found")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	out := http.NewResponseController(w)
	say := func(word string) bool {
		_ = out.SetWriteDeadline(s.env.Now().Add(ping)) // a failure means that the client disconnected
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

// changes signals changes to the files that determine the state of threads until ctx is cancelled. With a
// thread, it includes the files of its step in flight. Pending changes are merged. It signals at once if
// something has changed since the fingerprint seen, unless that is "".
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
		_ = w.Add(filepath.Dir(dirs.Run(thread))) // the directory may be created later
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
		case _, open := <-w.Errors: // events were lost
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
	default: // a signal is already pending
	}
}

// prints returns a fingerprint of the files.
func prints(dirs home.Dirs, thread string) string {
	sum := fnv.New64a()
	look := []string{dirs.Home}
	if thread != "" {
		look = append(look, dirs.Run(thread))
	}
	for _, dir := range look {
		entries, _ := os.ReadDir(dir) // a missing directory has no entries
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				fmt.Fprintln(sum, entry.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}
