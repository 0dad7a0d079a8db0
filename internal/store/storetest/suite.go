package storetest

import "testing"

// Run runs the suite against one engine. Each case has a database of its own.
func Run(t *testing.T, e Engine) {
	e.available(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, e)
		})
	}
}

type testCase struct {
	name string
	run  func(*testing.T, Engine)
}

var cases []testCase

func init() { cases = allCases() } // not a plain value: a case looks at the list

func allCases() []testCase {
	return []testCase{
		{"PaymentFromIntentToAnswer", testLife},
		{"SchemaRefusesByItself", testPromises},
		{"SlotRace", testSlotRace},
		{"OneKeyManyFirstRequests", testKeyRace},
		{"TwinBetweenTwoReads", testTwinBetweenReads},
		{"TwinsInTwoProcesses", testTwins},
		{"UnitIsAllOrNothing", testAllOrNothing},
		{"NothingWrittenLeavesNoTrace", testNoTrace},
		{"FixedColumnsNeverChange", testFixedColumns},
		{"StalePictureIsNeverWritten", testStalePicture},
		{"RogueWriterIsNotOverwritten", testRogueWriter},
		{"ShuffledBatchesDoNotDeadlock", testShuffledBatches},
		{"DeadlockIsTriedAgain", testDeadlockRetry},
		{"DuplicatesWithinABatch", testDuplicatesInBatch},
		{"EndedContext", testEndedContext},
		{"LostCommit", testLostCommit},
		{"LostCommitUnreadable", testLostCommitUnreadable},
		{"LostCommitOfManyTakesOneTimeLimit", testLostCommitOfMany},
		{"LostCommitWrittenOver", testLostCommitWrittenOver},
		{"HeldRowDelaysOnlyItsOwnOrder", testHeldRow},
		{"HeldRowDelaysNoLaterBatch", testHeldRowAside},
		{"CallersTimeBoundsTheBatch", testCallersTime},
		{"EveryCallIsBounded", testBoundedCalls},
		{"CrowdOfReadersIsBounded", testBoundedCrowd},
		{"NoticesAreParked", testParking},
		{"NoticeAndItsEffectAreOne", testNoticeUnits},
		{"OneNoticeTwoProcesses", testNoticeRace},
		{"LostCommitOfANotice", testLostNotice},
		{"ReadOnlyIsUnavailable", testReadOnly},
		{"NamesCompareAsBytes", testNames},
		{"ProcessClockChangesNothing", testClock},
		{"AllMembersRoundTrip", testRoundTrip},
		{"AllTablesAreCovered", testTables},
		{"QueueFindsWork", testQueue},
		{"ListsByScopeAndPage", testLists},
		{"AdminKeysAndInstallation", testAdmin},
		{"MigrationsSideBySide", testMigrations},
		{"TextFromOutside", testForeignText},
	}
}
