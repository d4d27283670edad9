package agentkit

// AtEnd has f called when the step is over, however it ended: after the last
// correction, before the result line. Later ones are called first. It is for what
// a run leaves open so that a correction finds it.
func (r *Request) AtEnd(f func()) { r.kit.atEnd = append(r.kit.atEnd, f) }

// end calls what was left for the end.
func (k *kit) end() {
	for i := len(k.atEnd) - 1; i >= 0; i-- {
		k.atEnd[i]()
	}
	k.atEnd = nil
}
