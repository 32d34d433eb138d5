-- odc._lowest_bit: the position, from 1, of the lowest bit of a word of up to 62 bits. Powers of two have different
-- remainders divided by 67. Inlined.
create or replace function odc._lowest_bit(p_word bigint)
returns integer
language sql immutable as $$
    select ('{0,1,2,40,3,16,41,24,4,13,17,60,42,20,25,55,5,0,14,11,18,0,0,29,43,31,21,52,26,45,56,48,6,33,0,39,15,23,12,59,19,54,0,10,0,28,30,51,44,47,32,38,22,58,53,9,27,50,46,37,57,8,49,36,7,35,34}'::integer[])[(p_word & -p_word) % 67 + 1]
$$;
