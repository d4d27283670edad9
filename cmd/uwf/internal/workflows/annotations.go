package workflows

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// writeAnnotations writes problems as commands of a GitHub workflow's log, one
// a line: ::error file=…,line=…,col=…::message. The remedy follows in the
// message.
func writeAnnotations(w io.Writer, problems []protocol.Problem) error {
	for _, p := range problems {
		message := p.Message
		if p.Remedy != "" {
			message += "\n" + p.Remedy
		}
		place := "file=" + annotationValue(filepath.ToSlash(p.File))
		if p.Line > 0 {
			place += fmt.Sprintf(",line=%d,col=%d", p.Line, p.Column)
		}
		_, err := fmt.Fprintf(w, "::error %s,title=uwf workflow::%s\n", place, annotationText(message))
		if err != nil {
			return err
		}
	}
	return nil
}

// annotationText escapes what would end the command or begin another.
func annotationText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// annotationValue escapes what would end a property, too.
func annotationValue(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
