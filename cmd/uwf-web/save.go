package main

import (
	"bufio"
	"errors"
	"net/http"

	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/engine/view/htmlpage/markdown"
)

// save serves a thread as a self-contained file, like thread export --html.
func (s *server) save(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if _, _, err := s.about(r.Context(), id); err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id+`.html"`)
	out := bufio.NewWriter(w)
	if err := errors.Join(htmlpage.Export(r.Context(), out, s.engine, id, true, markdown.Render), out.Flush()); err != nil {
		panic(http.ErrAbortHandler) // makes the browser report an incomplete response
	}
}
