package engine

import "github.com/united-workforce/uwf/protocol"

// hidden is an error in whose message nothing is secret: it quotes what programs print.
func (e *Engine) hidden(err *protocol.Error) *protocol.Error {
	text := e.Secrets().Hide(err.Message)
	if text == err.Message {
		return err
	}
	return &protocol.Error{Code: err.Code, Message: text, Hints: err.Hints, Err: err}
}
