-- Old rows of the hot tables are to come here, so that any past moment can be told.
select;
