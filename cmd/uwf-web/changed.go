package main

import (
	"sync"

	"github.com/united-workforce/uwf/engine/view/htmlpage"
)

// changedFiles remembers the file changes of steps, which never change and are slow to read from git.
type changedFiles struct {
	mu    sync.Mutex
	known map[string]*htmlpage.ChangedFiles
}

// of returns the changes with a key, reading them if they are unknown.
func (c *changedFiles) of(key string, read func() *htmlpage.ChangedFiles) *htmlpage.ChangedFiles {
	const most = 200 // each has up to 64 KiB of lines
	c.mu.Lock()
	files, ok := c.known[key]
	c.mu.Unlock()
	if ok {
		return files
	}
	if files = read(); files != nil && files.Problem == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.known == nil || len(c.known) >= most {
			c.known = map[string]*htmlpage.ChangedFiles{}
		}
		c.known[key] = files
	}
	return files
}
