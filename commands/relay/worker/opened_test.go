package worker

// tell passes an actor the news since the last call, or since it was made.
func (w *world) tell(a *actor) {
	w.t.Helper()
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), w.heard[a], toldOf, newsMax) {
		must(w.t, err)
		a.News.tell(batch.Events)
		w.heard[a] = batch.Next
	}
}

// opened returns the actor of a process that opens the lane.
func (w *world) opened(l *Lane) (*actor, error) {
	begun, err := w.db.Log().Head(w.t.Context())
	must(w.t, err)
	held, token, err := l.open(w.t.Context())
	if err != nil {
		return nil, err
	}
	a := newActor(l, held, token, l.News.open())
	w.heard[a] = begun
	return a, nil
}

// worker returns an actor that does not die.
func (w *world) worker() *actor {
	w.t.Helper()
	_, l := w.live(0, false)
	a, err := w.opened(l)
	must(w.t, err)
	return a
}
