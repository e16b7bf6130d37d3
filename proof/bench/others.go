package main

// peer is another program's result. A dash means not measured, or not measurable.
type peer struct {
	name, accepted, accept, mined, t2m, final, cpu, calls, verdict string
}

const (
	fftm   = "FFTM 1.4.4"
	engine = "thirdweb engine TS"
	op     = "OP txmgr 1.10.0 (library)"
)

// others are the results of other programs of this kind, by run.
type others struct{ oneSigner, tenSigners, steady, lost, killed, replicas, doubled []peer }

func measuredOthers() others {
	return others{
		oneSigner: []peer{
			{fftm, "1619", "17 / 66", "34.6", "13.6 / 28.3", "14.5 / 29.0", "12.8", "2.2", "0 / 0 / 0 / 0"},
			{engine, "125", "108 / 1636", "83.2", "6.3 / 9.7", "8.8 / 10.2", "21.6", "3.6", "0 / 0 / 49 / 0"},
			{op, "–", "–", "104.8", "4.6 / 9.5", "–", "2.7", "8.0", "0 / 0 / 0 / 0"},
		},
		tenSigners: []peer{
			{fftm, "1096", "26 / 74", "26.9", "36.6 / 72.6", "38.6 / 73.3", "14.6", "2.2", "0 / 0 / 0 / 0"},
			{engine, "198", "74 / 1215", "112.6", "7.4 / 14.9", "8.4 / 10.7", "8.6", "2.8", "0 / 0 / 1 / 0"},
			{op, "–", "–", "253.8", "4.5 / 7.4", "–", "2.0", "5.9", "0 / 0 / 0 / 0"},
		},
		steady: []peer{
			{fftm, "20", "17 / 67", "19.7", "0.58 / 1.12", "1.25 / 1.49", "12.7", "2.3", "0 / 0 / 0 / 0"},
			{engine, "20", "7 / 165", "19.7", "0.57 / 1.19", "2.1 / 2.5", "26.5", "12.5", "0 / 0 / 0 / 0"},
			{op, "–", "–", "19.8", "–", "–", "3.5", "–", "0 / 0 / 0 / 0"},
		},
		lost: []peer{
			{fftm, "–", "–", "2.9", "46 / –", "–", "40", "–", "0 / 0 / 4 of 8 / 0"},
			{engine, "–", "–", "–", "–", "–", "–", "–", "0 / 9 of 9 / 0 / 0"},
			{op, "–", "–", "–", "–", "–", "–", "–", "0 / 0 / 8 told failed / 0"},
		},
		killed: []peer{
			{fftm, "–", "–", "8 after it", "–", "–", "–", "–", "0 / 0 / 1 / –"},
			{engine, "–", "–", "–", "–", "–", "–", "–", "0 / 0 / 0 / – (20 s to come back)"},
		},
		replicas: []peer{
			{fftm, "–", "–", "–", "–", "–", "–", "–", "0 / 0 / 73 of 412 / 188 of 600"},
		},
		doubled: []peer{
			{fftm, "130 of 400", "–", "–", "–", "–", "–", "–", "0 / 0 / 0 / 464 of 600"},
			{engine, "400 of 400", "–", "–", "–", "–", "–", "–", "0 / 0 / 0 / 0"},
		},
	}
}
